"""Pages made from the code while the site is built: one per pass, one per API's rules.

Nothing generated is committed, so nothing can be out of date.
"""

import json
from inspect import cleandoc, formatannotation

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from convnorm import Policy
from convnorm.dialects import DIALECTS
from convnorm.passes import BUILTIN
from convnorm.rules import CATALOGUE, Rule
from convnorm.rules.shorten import as_json, shortened
from convnorm.targets.apis import APIS


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and a section of the navigation for each kind."""
    config.nav = list(config.nav or ())
    for title, folder, pages in (
        ("Passes", "passes", pass_pages()),
        ("Rules", "rules", rule_pages()),
    ):
        for name, content in pages.items():
            files.append(File.generated(config, f"{folder}/{name}.md", content=content))
        config.nav.append({title: [f"{folder}/{name}.md" for name in pages]})
    schema = json.dumps(Policy.model_json_schema(), indent=2)
    files.append(File.generated(config, "policy.schema.json", content=schema))
    return files


def cell(text: str) -> str:
    """A text that a table's cell can hold."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """A text as code in a table's cell."""
    return f"`{cell(text)}`"


# ---------------------------------------------------------------- passes


def pass_pages() -> dict[str, str]:
    """The index of passes in their order, then a page for each, by name."""
    lines = [
        f"{number}. [{name}]({name}.md): {summary(pass_)}"
        for number, (name, pass_) in enumerate(BUILTIN.items(), start=1)
    ]
    said = "The passes run in this order; one that is opt-in only where a policy names it."
    index = f"# Passes\n\n{said}\n\n" + "\n".join(lines)
    return {"index": index, **{name: pass_page(name, BUILTIN[name]) for name in BUILTIN}}


def summary(pass_: type[BaseModel]) -> str:
    """The first sentence of a pass's docstring."""
    return cleandoc(pass_.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def pass_page(name: str, pass_: type[BaseModel]) -> str:
    """What a pass says of itself, and a table of its options."""
    rows = [
        f"| {code(field)} | {code(formatannotation(info.annotation))} | {code(default(info))} "
        f"| {cell(info.description or '')} |"
        for field, info in pass_.model_fields.items()
        if field != "name"
    ]
    table = ["| option | type | default | meaning |", "|---|---|---|---|", *rows]
    options = "\n".join(table) if rows else "None."
    return f"# {name}\n\n{cleandoc(pass_.__doc__ or '')}\n\n## Options\n\n{options}\n"


def default(info: FieldInfo) -> str:
    """What an option is when nobody sets it."""
    if info.is_required():
        return "required"
    return repr(info.get_default(call_default_factory=True, validated_data={}))


# ---------------------------------------------------------------- rules


INDEX = """# Rules

What each API enforces on a request, with the words it refuses in: paste an error text into the
search above to find its rule, or print a rule with `convnorm rule NAME`. No live API was called:
each rule says how certain it is.

| certainty | what it rests on |
|---|---|
| observed | the error was read in public threads |
| documented | SDK types, a specification, documentation, or the provider's staff |
| reported | one thread, or one library's source |
| reasoned | follows from other facts; nobody was seen to run into it |
| disputed | sources contradict each other: reported only on request |
| ours | convnorm's own advice: reported only on request |

"""


def rule_pages() -> dict[str, str]:
    """The index of APIs, the repairs of all, then a page of rules for each, by API name."""
    lines = [f"- [{api}]({api}.md): {len(rules)} rules" for api, rules in CATALOGUE.items()]
    index = INDEX + "\n".join([*lines, "- [Repairs](repairs.md): what each repair costs"])
    pages = {api: rule_page(api, CATALOGUE[api]) for api in CATALOGUE}
    return {"index": index, "repairs": repair_page(), **pages}


REPAIRS = """# Repairs

By API: each rule, the pass that repairs it, and what that costs under the default options. A rule
that nothing repairs silently raises `UnrepairableError` if it was observed or is documented; what
to do about it stands with the rule.
"""


def repair_page() -> str:
    """Each rule, the pass that repairs it, and what it costs."""
    return REPAIRS + "".join(map(repair_table, CATALOGUE)) + "\n"


def repair_table(api: str) -> str:
    """The repairs of one API."""
    built = api in DIALECTS or api not in APIS
    note = "" if built else "\n`check` reports these rules; nothing is repaired for this API yet.\n"
    rows = [
        f"| [{rule.id}]({api}.md#{rule.id}) "
        f"| {repairer(rule.repair) if built else 'nothing yet'} "
        f"| {cell(rule.loss) if rule.repair else ''} |"
        for rule in CATALOGUE[api]
    ]
    head = ["| rule | repaired by | what it costs |", "|---|---|---|"]
    return "\n".join([f"\n## {api}\n{note}", *head, *rows, ""])


FOUND_FIRST = """---
search:
  boost: 10
---

"""


def rule_page(api: str, rules: tuple[Rule, ...]) -> str:
    """The rules of one API, each under an anchor that is its id."""
    return f"{FOUND_FIRST}# Rules of {api}\n\n" + "\n\n".join(map(rule_section, rules)) + "\n"


def rule_section(rule: Rule) -> str:
    """One rule: what it says, the API's own words, what is known of it, and how to break it."""
    facts = {
        "level": rule.level,
        "certainty": rule.certainty,
        "repaired by": repairer(rule.repair),
        "loss": rule.loss,
        "remedy": rule.remedy,
        "growth can break an old message": "yes" if rule.retroactive else "no",
        "sources": ", ".join(rule.sources),
    }
    rows = "\n".join(f"| {name} | {cell(value)} |" for name, value in facts.items())
    short, cuts = shortened(rule.example)
    example = as_json(short)
    needs = ", ".join(f"{key} {code(json.dumps(value))}" for key, value in rule.setting.items())
    breaks = f"A request that breaks it{f', with {needs}' if needs else ''}:"
    return f"""## {rule.id} {{ #{rule.id} }}

{rule.statement}

```text
{rule.error}
```

<div data-search-exclude markdown>

| | |
|---|---|
{rows}

{breaks}

```json
{example}
```

{" ".join(cuts)}

</div>"""


def repairer(name: str | None) -> str:
    """The pass that repairs a rule, with a link if it is built."""
    if name is None:
        return "nothing silently"
    return f"[{name}](../passes/{name}.md)" if name in BUILTIN else f"{name} (not built yet)"
