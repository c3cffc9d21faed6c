"""Warn of rules that are valid, but have no effect or cannot be intended."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import combinations, islice
from pathlib import Path
from typing import NamedTuple

from idbg.accelerators import toml_text
from idbg.accelerators.parse import parse
from idbg.analysis import ops
from idbg.constraints import Constraint
from idbg.format.spelling import did_you_mean
from idbg.schema.violations import Severity

_MOST_GLOBS = 10
_OURS = ("aten", "prims", "torch", "operator", "_operator")

# What is only slower contradicts nothing
_BINDING: tuple[Severity, ...] = ("reject", "fallback", "pad")


class RuleWarning(NamedTuple):
    """`line` is 1-based in the accelerator's text."""

    line: int
    message: str


@lru_cache(maxsize=4)
def warnings(text: str) -> tuple[RuleWarning, ...]:
    """What is odd in this text, in the order of its lines. Raises AcceleratorError if it is not a valid accelerator."""
    rules = parse(text).rules
    return tuple(sorted([*_dead_globs(rules, text), *_odd(rules, text), *_contradictions(rules, text)]))


def _odd(rules: tuple[Constraint, ...], text: str) -> Iterator[RuleWarning]:
    """Rules that can do nothing, each by itself."""
    for number, rule in enumerate(rules):
        if rule.enabled and (why := rule.odd()):
            yield RuleWarning(toml_text.find_line(text, "rules", number), f'"{rule.name}": {why}')


def _dead_globs(rules: tuple[Constraint, ...], text: str) -> Iterator[RuleWarning]:
    """Globs that no operation of torch matches; the first few, for a file that is full of them is another mistake."""
    dead = (
        (number, key, glob)
        for number, rule in enumerate(rules)
        for key, glob in rule.globs()
        if not matches_an_op(glob)
    )
    for number, key, glob in islice(dead, _MOST_GLOBS):
        near = did_you_mean(ops.short_name(glob), op_names())
        said = "; ".join(filter(None, (f'no op of torch matches "{glob}"', near)))
        yield RuleWarning(_line_of(text, number, key, glob), said)


def matches_an_op(glob: str) -> bool:
    """Whether the glob names any operation of torch; true of what names another library's."""
    path = glob.removeprefix("torch.ops.")
    library, _, rest = path.partition(".")
    if rest and not set(library) & set("*?[") and library not in _OURS:
        return True
    if library in ("torch", "operator", "_operator"):
        path = ops.short_name(glob)
    elif rest:
        path = rest.partition(".")[0]
    if not set(path) & set("*?["):
        return path in op_names() or path.removesuffix("_") in op_names()
    return any(fnmatchcase(name, path) for name in op_names())


@lru_cache(maxsize=1)
def op_names() -> frozenset[str]:
    """The short names of all operations of torch 2.11 and 2.15 (ATen, prims, functions, methods)."""
    return frozenset((Path(ops.__file__).with_name("op_names.txt")).read_text(encoding="utf-8").split())


def _contradictions(rules: tuple[Constraint, ...], text: str) -> Iterator[RuleWarning]:
    """Pairs of rules that nothing can satisfy."""
    binding = [(number, rule) for number, rule in enumerate(rules) if rule.enabled and rule.severity in _BINDING]
    for (_, first), (number, second) in combinations(binding, 2):
        why = _overlap(first, second) and (first.contradicts(second) or second.contradicts(first))
        if why:
            line = toml_text.find_line(text, "rules", number)
            yield RuleWarning(line, f'"{second.name}" contradicts "{first.name}": {why}')


def _overlap(first: Constraint, second: Constraint) -> bool:
    """Whether there may be a node, and a tensor of it, that both rules concern."""
    tensors = {getattr(rule, "tensors", "all") for rule in (first, second)}
    if tensors == {"results", "operands"} and (first.ops or second.ops):
        return False
    if first.ops and second.ops and not any(_alike(one, other) for one in first.ops for other in second.ops):
        return False
    scopes = ((first.roles, second.roles), (first.stages, second.stages))
    return all(not one or not other or set(one) & set(other) for one, other in scopes)


def _alike(one: str, other: str) -> bool:
    return fnmatchcase(one, other) or fnmatchcase(other, one)


def _line_of(text: str, number: int, key: str, item: str) -> int:
    """The line of one string in a rule's list; that of its key where it is not found."""
    for place in toml_text.places(text):
        if (place.table, place.number, place.key) == ("rules", number, key):
            at = text.find(toml_text.spelled(item), place.start, place.end)
            return place.line + (text.count("\n", place.start, at) if at >= 0 else 0)
    return toml_text.find_line(text, "rules", number)
