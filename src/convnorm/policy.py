"""The policy: whose rules, which passes with which options, and how loudly they change things."""

import json
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, field_validator
from pydantic_core import CoreSchema, core_schema

from convnorm.errors import PolicyError
from convnorm.options import Options, nearest
from convnorm.passes import BUILTIN, DEFAULT, third_party, third_party_names
from convnorm.targets import Target, find_target

OnChange = Literal["fix", "warn", "raise"]


class _AnyPass:
    """How a pass is read from a policy: by name, as a table with its options, or as it is."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _load_pass,
            serialization=core_schema.plain_serializer_function_ser_schema(_dump_pass),
        )

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        tables = [kind.model_json_schema() for kind in BUILTIN.values()]
        return {"anyOf": [{"type": "string", "examples": list(BUILTIN)}, *tables]}


def _load_pass(value: Any) -> Any:
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        if callable(value) and isinstance(getattr(value, "name", None), str):
            return value
        raise PolicyError(f"{value!r} is no pass: give its name, or a callable with a `name`")
    name = value.get("name")
    known = [*BUILTIN, *third_party_names()]
    kind = BUILTIN.get(str(name)) or third_party(str(name))
    if kind is None:
        raise PolicyError(f"there is no pass {name!r}; {nearest(str(name), known)}")
    options = {str(key): option for key, option in value.items() if key != "name"}
    try:
        return kind(**options)
    except TypeError as error:  # how a pass without our Options refuses one
        raise PolicyError(f"pass {name}: {error}") from None


def _dump_pass(value: Any) -> Any:
    options = value.model_dump(mode="json", exclude_defaults=True) if _is_model(value) else {}
    return {"name": value.name, **options}


def _is_model(value: object) -> bool:
    return hasattr(value, "model_dump")


class Policy(Options):
    """What `normalize` does: the target's rules, the passes in order, and what a change means."""

    target: str
    """Whose rules the request must satisfy: `openai.chat`, `openai.responses`."""
    provider: str | None = None
    """Who serves that API, when it is not its first party."""
    model: str | None = None
    """The model the request goes to."""
    dialect: str | None = None
    """The wire shape that comes in and goes out; the target's own unless said otherwise."""
    passes: tuple[Annotated[Any, _AnyPass()], ...] = tuple(BUILTIN[name]() for name in DEFAULT)
    """The passes, in order; by default all but those that are opt-in."""
    on_change: OnChange | dict[str, OnChange] = "fix"
    """What a change means, for all or per pass: `fix`, `warn` (fix and log) or `raise`."""
    unrepairable: Literal["raise", "send"] = "raise"
    """A fault that no pass may repair: `raise`, or leave it to the provider."""

    def __init__(self, /, **values: Any) -> None:
        # A pass can also be set under its own name: repair_tool_pairs = {orphans = "drop"}. One
        # that is opt-in runs when it is named so: fit_budget = {}.
        tables = {key: values.pop(key) for key in list(values) if key in BUILTIN}
        if tables:
            if "passes" in values:
                raise PolicyError(f"set {', '.join(tables)} in `passes`, or leave `passes` out")
            for name, table in tables.items():
                if not isinstance(table, Mapping):
                    raise PolicyError(f"{name}: a table of options is needed, not {table!r}")
            values["passes"] = [
                {**tables.get(name, {}), "name": name}
                for name in BUILTIN
                if name in tables or name in DEFAULT
            ]
        super().__init__(**values)
        if isinstance(self.on_change, dict):
            names = [pass_.name for pass_ in self.passes]
            for name in self.on_change:
                if name not in names:
                    raise PolicyError(f"on_change names no pass: {name!r}; {nearest(name, names)}")
        self.resolved  # noqa: B018  # an unknown target is an error here, not at the first call

    @field_validator("passes")
    @classmethod
    def _in_order(cls, passes: tuple[Any, ...]) -> tuple[Any, ...]:
        order = list(BUILTIN)
        names = [pass_.name for pass_ in passes]
        for name in {name for name in names if names.count(name) > 1}:
            raise PolicyError(f"pass {name!r} is in the policy twice")
        places = [order.index(name) for name in names if name in order]
        for one, two in pairwise(places):
            if one > two:
                raise PolicyError(
                    f"{order[two]} must come before {order[one]}: see the order of passes"
                )
        return passes

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler.resolve_ref_schema(handler(schema))
        found["properties"] |= {name: kind.model_json_schema() for name, kind in BUILTIN.items()}
        return found

    @property
    def resolved(self) -> Target:
        """The target's profile, as this provider serves it to this model."""
        return find_target(
            self.target, provider=self.provider, model=self.model, dialect=self.dialect
        )

    def mode(self, name: str) -> OnChange:
        """What a change by the pass `name` means."""
        return (
            self.on_change if isinstance(self.on_change, str) else self.on_change.get(name, "fix")
        )

    @classmethod
    def for_target(
        cls,
        name: str,
        *,
        model: str | None = None,
        provider: str | None = None,
        dialect: str | None = None,
        **options: Any,
    ) -> Self:
        """The default policy for a target; options are policy fields, or passes by their name."""
        return cls(target=name, model=model, provider=provider, dialect=dialect, **options)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """A policy from a JSON or TOML file; in pyproject.toml it is the table `tool.convnorm`."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise PolicyError(f"{path} cannot be read as a policy: {error}") from None
        if path.name == "pyproject.toml":
            tool = found.get("tool")
            found = tool.get("convnorm") if isinstance(tool, dict) else None
        if not isinstance(found, dict):
            raise PolicyError(f"{path} has no policy: a table with at least `target` is needed")
        return cls(**found)
