"""List the accelerators, or show the rules of one."""

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from idbg.accelerators import edit, registry
from idbg.accelerators.lint import RuleWarning, warnings
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.cli import exits, output, tables
from idbg.constraints import Constraint
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.errors import AcceleratorError, BadInput
from idbg.schema.programs import Target
from idbg.schema.violations import SEVERITIES, Severity
from idbg.views.tree import Cell, Column, Row, Section, Table, words

HELP = "list the accelerators, or show the rules of one"
ABOUT = """\
List the accelerators: the presets and those of other packages, with the number of rules of each severity; or show the
rules of one, with their sources.
"""
EXAMPLES = (
    ("idbg accelerators", "the list"),
    ("idbg accelerators show tpu", "the rules of one"),
    ("idbg accelerators show tpu --toml > mine.toml", "its file, to start your own"),
)
EXITS = {exits.DONE: "they were printed"}
SEE = ("check", "info")
SCHEMA = "idbg.accelerators/1"
WIDTH = 100
COMMON = frozenset(("kind", *(field.name for field in msgspec.structs.fields(Constraint))))  # keys of every rule


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list. `rules` counts the enabled rules; `error`: why the accelerator cannot be used."""

    name: str
    path: str = ""
    description: str = ""
    rules: dict[Severity, int] = {}
    numerics: bool = False
    error: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(name=None)
    tables.add_sort(parser)
    show = parser.add_subparsers(metavar="show").add_parser(
        "show", help="the rules of one: idbg accelerators show NAME", description="Show the rules of one accelerator."
    )
    show.add_argument("name", metavar="ACCELERATOR", help="a preset's name or a TOML file")
    show.add_argument("--toml", action="store_true", help="the file as it is")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Raises AcceleratorError for one that cannot be read."""
    if args.name is None:
        every = list(listed())
        output.report(
            lambda: {"schema": SCHEMA, "accelerators": every}, lambda: tables.text(_section(every), args.sort)
        )
    elif args.toml and args.json:
        raise BadInput("--toml and --json exclude each other", hint="leave one out")
    elif args.toml:
        output.say(registry.find(args.name)[0].rstrip("\n"))
    else:
        _show(args.name)
    return exits.DONE


def listed() -> Iterator[Listed]:
    """Each preset, and each accelerator of another package; a broken one with the reason."""
    for name in registry.names():
        try:
            text, path = registry.find(name)
            accelerator = parse(text)
        except AcceleratorError as error:
            yield Listed(name=name, error=error.message)
            continue
        counts = Counter(rule.severity for rule in _written(accelerator, text) if rule.enabled)
        ordered = {severity: counts[severity] for severity in SEVERITIES if counts[severity]}
        yield Listed(
            name=name,
            path=path,
            description=accelerator.description,
            rules=ordered,
            numerics=accelerator.numerics is not None,
        )


def _section(every: list[Listed]) -> Section:
    shown = [severity for severity in SEVERITIES if any(severity in each.rules for each in every)]
    columns = (*(Column(severity, "count", 2) for severity in shown), Column("description", least=20))
    rows = [
        Row(
            each.name,
            words(each.name),
            (
                *(Cell(None if each.error else each.rules.get(severity, 0)) for severity in shown),
                Cell(f"cannot be used: {each.error}" if each.error else each.description),
            ),
        )
        for each in every
    ]
    return Section("Accelerators", "", len(every), body=(Table(columns, rows, "accelerator"),))


def _show(name: str) -> None:
    _, path = registry.find(name)
    text, _ = rules_for(Target(accelerator=name))
    accelerator, odd = parse(text), warnings(text)
    rules = _written(accelerator, text)
    output.report(
        lambda: {
            "schema": SCHEMA,
            "name": name,
            "path": path,
            "description": accelerator.description,
            "numerics": accelerator.numerics,
            "rules": [{"kind": rule.kind, **msgspec.structs.asdict(rule)} for rule in rules],
            "warnings": [warning._asdict() for warning in odd],
        },
        lambda: "\n".join(
            _wrapped(line, len(line) - len(line.lstrip()) + 4) for line in _shown(name, path, accelerator, rules, odd)
        ),
    )


def _shown(
    name: str, path: str, accelerator: Accelerator, rules: tuple[Constraint, ...], odd: Iterable[RuleWarning]
) -> Iterator[str]:
    sources = list(dict.fromkeys((rule.version, rule.source) for rule in rules if rule.source))
    yield f"{name}   {accelerator.description}".rstrip()
    yield f"  {path}"
    for rule in rules:
        yield ""
        off = "" if rule.enabled else "   (off)"
        kind = "" if rule.name == rule.kind else f"   {rule.kind}"
        number = f"   [{sources.index((rule.version, rule.source)) + 1}]" if rule.source else ""
        yield f"{SEVERITY_SIGNS[rule.severity]} {rule.name}{kind}   {rule.severity}{number}{off}"
        yield from (f"    {line}" for line in rule_lines(rule))
    if accelerator.numerics is not None:
        yield ""
        yield f"computes as the hardware would: {_spelled(msgspec.to_builtins(accelerator.numerics))}"
    if sources:
        yield ""
        yield from (f"[{number}] {version}   {url}" for number, (version, url) in enumerate(sources, 1))
    for warning in odd:
        yield ""
        yield f"! line {warning.line}: {warning.message}"


def rule_lines(rule: Constraint) -> Iterator[str]:
    """A rule's keys, where it applies, and its author's hint."""
    own = {key: value for key, value in msgspec.to_builtins(rule).items() if key not in COMMON}
    if own:
        yield _spelled(own)
    where = [
        *([f"calls of {', '.join(rule.ops)}"] if rule.ops else []),
        *([", ".join(rule.roles)] if rule.roles else []),
        *([f"{', '.join(rule.stages)} graphs"] if rule.stages else []),
    ]
    if where:
        yield f"only: {'; '.join(where)}"
    if rule.fix:
        yield f"→ {rule.fix}"
    if rule.version and not rule.source:
        yield f"as of {rule.version}"


def _written(accelerator: Accelerator, text: str) -> tuple[Constraint, ...]:
    """The rules of the text, without the implicit one of kind "unknown"."""
    return accelerator.rules[: edit.count(text)]


def _spelled(keys: dict[str, object]) -> str:
    return "; ".join(f"{key.replace('_', ' ')}: {_value(value)}" for key, value in keys.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _wrapped(line: str, indent: int) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
