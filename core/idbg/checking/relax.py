"""Find the smallest change of each broken rule that accepts the graphs."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from idbg.accelerators import edit
from idbg.accelerators.parse import parse
from idbg.constraints import Constraint, Findings
from idbg.format.amounts import size
from idbg.schema.violations import Severity


class Relaxation(Struct, frozen=True):
    """The smallest change of one rule that all graphs pass: `relaxed` is the rule with it, None where only switching
    the rule off helps. `words` says it: "multiple 16 → 7". `count` violations go with it."""

    rule: Constraint
    relaxed: Constraint | None
    words: str
    count: int


def relaxations(findings: Sequence[Findings], severities: Sequence[Severity] = ("reject",)) -> list[Relaxation]:
    """For each broken rule of these severities, in the order of the rules. The findings are of the same rules."""
    counts: dict[str, int] = {}
    for of_graph in findings:
        for name, count in of_graph.by_rule.items():
            counts[name] = counts.get(name, 0) + count
    rules = findings[0].rules if findings else ()
    return [
        _relaxation(rule, findings, counts[rule.name])
        for rule in rules
        if counts[rule.name] and rule.severity in severities
    ]


def relaxed_text(text: str, relaxations: Iterable[Relaxation]) -> str:
    """The accelerator's text with these changes made. Raises AcceleratorError if it is not valid."""
    for relaxation in relaxations:
        rules = parse(text).rules
        number = next((at for at, rule in enumerate(rules) if rule.name == relaxation.rule.name), None)
        if number is None:
            continue
        if relaxation.relaxed is None:
            text = edit.write(text, number, rules[number], "enabled", False) or text
        else:
            text = edit.checked(edit.apply(text, number, relaxation.rule, relaxation.relaxed))
    return text


def _relaxation(rule: Constraint, findings: Sequence[Findings], count: int) -> Relaxation:
    concerned = [each for each in findings if not rule.stages or each.graph.id.stage in rule.stages]
    signatures = [signature for each in concerned for signature, _, _ in each.signatures() if rule.concerns(signature)]
    graphs = [each.facts for each in concerned]
    relaxed = rule.relaxed(signatures, graphs)
    if relaxed is None or any(True for signature in signatures for _ in relaxed.check(signature)):
        return Relaxation(rule, None, "no value of its keys does: switch it off", count)
    return Relaxation(rule, relaxed, ", ".join(_changes(rule, relaxed)), count)


def _changes(before: Constraint, after: Constraint) -> Iterator[str]:
    for field in msgspec.structs.fields(before):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if old != new:
            yield f"{field.name} {_change(field.name, old, new)}"


def _change(key: str, old: object, new: object) -> str:
    if isinstance(old, tuple) and isinstance(new, tuple):
        less = [f"− {item}" for item in old if item not in new]
        more = [f"+ {item}" for item in new if item not in old]
        return ", ".join([*less, *more])
    if key.endswith("bytes") and isinstance(old, int | float) and isinstance(new, int):
        return f"+{size(int(new - old))} → {size(new)}"
    return f"{old} → {new}"
