"""The passes, in the one order that works, and where other packages' passes come from."""

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from convnorm.dialects.dialect import Call
from convnorm.edits import (
    FRONT,
    Assumed,
    Drop,
    Edit,
    Insert,
    Mend,
    Move,
    Replace,
    SetField,
    SetTurn,
    Unrepairable,
)
from convnorm.errors import PolicyError
from convnorm.ir import History
from convnorm.passes.arbitrate_sources import ArbitrateSources
from convnorm.passes.dedupe import Dedupe
from convnorm.passes.drop_empty import DropEmpty
from convnorm.passes.fit_budget import FitBudget
from convnorm.passes.fit_media import FitMedia
from convnorm.passes.keep_prefix import KeepPrefix
from convnorm.passes.legalise_ids import LegaliseIds
from convnorm.passes.relabel_handoffs import RelabelHandoffs
from convnorm.passes.repair_arguments import RepairArguments
from convnorm.passes.repair_reasoning import RepairReasoning
from convnorm.passes.repair_roles import RepairRoles
from convnorm.passes.repair_tool_pairs import RepairToolPairs
from convnorm.passes.scrub_fields import ScrubFields
from convnorm.passes.settle_link import SettleLink
from convnorm.passes.strip_ids import StripIds

ORDER = (
    # Labels tell best what is a copy, so they speak before anything is judged by ids.
    ArbitrateSources,
    # Copies go while their ids still prove that they are copies.
    Dedupe,
    # What the server has behind a link is recognised by ids, and replayed before pairs are mended.
    SettleLink,
    # Ids go once nothing needs them as evidence.
    StripIds,
    # Pairs of what was sent are settled: what comes late for them is told before pairs are mended.
    KeepPrefix,
    # Pairs are mended on what is really going to be sent.
    RepairToolPairs,
    # What another agent called is told once it is whole, and needs no repair as a call any more.
    RelabelHandoffs,
    # Reasoning is judged by what is left behind it, once calls and results are in place.
    RepairReasoning,
    # What a missing result says depends on the arguments as they came.
    RepairArguments,
    # Pairs are found by the ids they came with.
    LegaliseIds,
    # Only now is it known which turns have nothing left to say.
    DropEmpty,
    # Who speaks after whom depends on which turns are left.
    RepairRoles,
    # What is still sent is looked at key by key.
    ScrubFields,
    # What a part is called, and where it may stand, depends on who speaks.
    FitMedia,
    # What is too much is known when all the rest is as it will be sent.
    FitBudget,
)
OPT_IN = (RelabelHandoffs, FitBudget)
"""Passes that run only where a policy names them: they change what nobody would refuse, or lose
what a default policy keeps."""
BUILTIN = {pass_.model_fields["name"].default: pass_ for pass_ in ORDER}
"""The passes by policy key, in order."""
DEFAULT = tuple(name for name, kind in BUILTIN.items() if kind not in OPT_IN)
"""The passes of a policy that names none."""

GROUP = "convnorm.passes"
"""The entry point group in which other packages offer passes by name."""


KINDS = (Drop, Insert, Replace, Move, SetTurn, Mend, SetField, Assumed, Unrepairable)
"""What a pass may yield."""


def run_pass(pass_: Any, history: History, call: Call) -> Iterable[Edit | Assumed | Unrepairable]:
    """What a pass, built in or not, asks for; a stranger's mistakes are answered in our words."""
    found = pass_(history, call)
    if not isinstance(found, Iterable):
        raise PolicyError(f"pass {pass_.name} returned {found!r}: it must yield edits")
    for edit in found:
        if not isinstance(edit, KINDS):
            raise PolicyError(f"pass {pass_.name} yielded {edit!r}, which is no edit")
        for key in ("turn", "after"):
            at = getattr(edit, key, FRONT)
            if not FRONT <= at < len(history.turns):
                raise PolicyError(f"pass {pass_.name} edits turn {at}, which is not there")
        yield edit


def third_party(name: str) -> Any:
    """The pass another package offers under `name`, or None."""
    for found in entry_points(group=GROUP, name=name):
        return found.load()
    return None


def third_party_names() -> list[str]:
    """The names other packages offer."""
    return sorted(entry_points(group=GROUP).names)
