"""Which accelerators are there, and what are the rules of one?"""

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from idbg.accelerators import edit, registry
from idbg.accelerators.lint import RuleWarning, warnings
from idbg.accelerators.model import Accelerator
from idbg.accelerators.numerics import Numerics
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.cli import exits, output
from idbg.constraints import Constraint
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.errors import AcceleratorError, BadInput
from idbg.schema.programs import Target
from idbg.schema.violations import SEVERITIES, Severity

HELP = "list the accelerators, or show the rules of one"
ABOUT = """\
List the accelerators: the presets, those of other packages, and how many rules of each severity they have; or show the
rules of one, with their sources.
"""
EXAMPLES = (
    ("idbg accelerators", "the list"),
    ("idbg accelerators show tpu", "the rules of one"),
    ("idbg accelerators show tpu --toml > mine.toml", "its file, as a beginning of your own"),
)
EXITS = {
    exits.DONE: "they were told",
}
SEE = (
    "check",
    "info",
)


SCHEMA = "idbg.accelerators/1"
WIDTH = 100
COMMON = frozenset(("kind", *(field.name for field in msgspec.structs.fields(Constraint))))  # keys of every rule


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list. `rules` counts those that are on; `error` says why the accelerator cannot be used."""

    name: str
    path: str = ""
    description: str = ""
    rules: dict[Severity, int] = {}
    numerics: bool = False
    error: str = ""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One accelerator, with the rules that are written in its file; each has `kind` and the keys of its kind."""

    schema: str = SCHEMA
    name: str
    path: str
    description: str
    numerics: Numerics | None
    rules: list[dict[str, object]]
    warnings: list[dict[str, object]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which accelerator is told, or all of them as a list, and whether as text, JSON or TOML."""
    parser.set_defaults(name=None)
    show = parser.add_subparsers(metavar="show").add_parser(
        "show", help="the rules of one: idbg accelerators show NAME", description="Show the rules of one accelerator."
    )
    show.add_argument("name", metavar="ACCELERATOR", help="a preset's name or a TOML file")
    show.add_argument("--toml", action="store_true", help="the file as it is")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """List them, or tell one of them; gives 0. Raises AcceleratorError for one that cannot be had."""
    if args.name is None:
        _tell_list(list(listed()), as_json=args.json)
    elif args.toml and args.json:
        raise BadInput("--toml and --json are two forms of one thing", hint="leave one out")
    elif args.toml:
        output.say(registry.find(args.name)[0].rstrip("\n"))
    else:
        _tell_one(args.name, as_json=args.json)
    return 0


def listed() -> Iterator[Listed]:
    """A line for each preset, and for each accelerator of another package; where that is broken, with the reason."""
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


def _tell_list(listed: list[Listed], *, as_json: bool) -> None:
    if as_json:
        output.say_json({"schema": SCHEMA, "accelerators": listed})
        return
    shown = [severity for severity in SEVERITIES if any(severity in each.rules for each in listed)]
    left = max(len(each.name) for each in listed)
    output.say(f"{'':{left}}  {'  '.join(shown)}")
    for each in listed:
        numbers = "  ".join(f"{each.rules.get(severity, 0) or '':>{len(severity)}}" for severity in shown)
        text = f"cannot be used: {each.error}" if each.error else each.description
        _print_wrapped(f"{each.name:{left}}  {numbers}  {text}", len("  ".join(["x" * left, *shown, ""])))


def _tell_one(name: str, *, as_json: bool) -> None:
    _, path = registry.find(name)
    text, _ = rules_for(Target(accelerator=name))
    accelerator, odd = parse(text), warnings(text)
    if as_json:
        rules = [{"kind": rule.kind, **msgspec.structs.asdict(rule)} for rule in _written(accelerator, text)]
        told = [warning._asdict() for warning in odd]
        output.say_json(
            Shown(
                name=name,
                path=path,
                description=accelerator.description,
                numerics=accelerator.numerics,
                rules=rules,
                warnings=told,
            )
        )
        return
    for line in _shown(name, path, accelerator, _written(accelerator, text), odd):
        _print_wrapped(line, len(line) - len(line.lstrip()) + 4)


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
    """What a rule says beside its name and severity: the values of its keys, where it applies, its author's hint."""
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
    """The rules that the text has; the one of kind "unknown" that is there by itself is left out."""
    return accelerator.rules[: edit.count(text)]


def _spelled(keys: dict[str, object]) -> str:
    return "; ".join(f"{key.replace('_', ' ')}: {_value(value)}" for key, value in keys.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_wrapped(line: str, indent: int) -> None:
    output.say(
        textwrap.fill(line, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    )
