"""Find the guards that failed, read torch's text of each, and the share of a call that guards take."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from idbg.analysis.decisions.break_report import read_stack
from idbg.schema.decisions.dynamo import FailedGuard, FailedKind, FrameCalls, FrameGuards, Guard
from idbg.schema.runs import Run

_OTHER_WORDS = {
    "tensor '": "TENSOR_MATCH",
    "expected type of '": "TENSOR_MATCH",
    "Duplicate tensors found": "NO_TENSOR_ALIASING",
    "GLOBAL_STATE changed": "GLOBAL_STATE",
}
"""How torch's message of a failed guard begins where it does not repeat the guard's code -> its kind."""


class Failures:
    """Which compiles each guard of a run caused: those of this run alone are known."""

    def __init__(self, run: Run) -> None:
        self._frames: dict[str, _Causes] = {}
        for recompiled in run.recompiles:
            for failed in recompiled.failed:
                self._frames.setdefault(failed.against, _Causes()).add(failed, recompiled.frame)

    def __bool__(self) -> bool:
        return bool(self._frames)

    def of(self, frame: str, guard: Guard) -> tuple[str, ...]:
        """The frames that were compiled because this guard of `frame` failed, in order; none if it never did."""
        causes = self._frames.get(frame)
        return tuple(causes.compiles(guard)) if causes is not None else ()


class _Causes:
    """What failed of one frame's guards."""

    def __init__(self) -> None:
        self._by_code: dict[str, dict[str, None]] = {}
        self._by_kind: dict[tuple[str, str], dict[str, None]] = {}  # and source: of failures in other words

    def add(self, failed: FailedGuard, compiled: str) -> None:
        """The guard failed, and `compiled` was compiled for it."""
        code = failed.code or failed.text
        kind = next((kind for start, kind in _OTHER_WORDS.items() if code.startswith(start)), "")
        if kind:
            source = normal(failed.source) if kind == "TENSOR_MATCH" else ""
            self._by_kind.setdefault((kind, source), {})[compiled] = None
        else:
            self._by_code.setdefault(code, {})[compiled] = None

    def compiles(self, guard: Guard) -> dict[str, None]:
        """What was compiled for this guard."""
        found: dict[str, None] = {}
        for code in guard.code:
            found |= self._by_code.get(code, {})
        about = guard.source if guard.kind == "TENSOR_MATCH" else ""
        return found | self._by_kind.get((guard.kind, about), {})


def normal(source: str) -> str:
    """A source as guards have it: "x" of a message is "L['x']"."""
    return f"L['{source}']" if source.isidentifier() else source


def by_source(guards: Iterable[Guard]) -> dict[str, list[Guard]]:
    """The guards by the expression that they are about, in order; "" has those of the whole frame."""
    groups: dict[str, list[Guard]] = {}
    for guard in guards:
        groups.setdefault(guard.source, []).append(guard)
    return groups


@dataclass(frozen=True)
class Share:
    """What part of a call the guards of a frame take: `guards` of `guards + call` seconds. `first`: the only call that
    was made is the first one, which does more than others.
    """

    guards: float
    call: float
    first: bool

    @property
    def part(self) -> float:
        """From 0 to 1."""
        return self.guards / (self.guards + self.call) if self.guards + self.call else 0.0


def share(run: Run, guards: FrameGuards) -> Share | None:
    """None where the guards, or a call of the frame's graph, were not measured."""
    calls = run.decided.last(FrameCalls).get(guards.frame)
    if calls is None or guards.seconds is None:
        return None
    return Share(guards.seconds, calls.fastest, calls.calls == 1)


_ENTRY = re.compile(r"^(\S+/\d+): ")
_STACK = "\nUser stack trace:\n"
_TENSOR = re.compile(
    r"^tensor '(.+)' (.+?) mismatch(?: at index (\d+))?\. expected (.+?)(?:, actual (.+?)(?:\. Guard .+)?)?$"
)
_TYPE = re.compile(r"^expected type of '(.+)' to be <class '(.+)'>, but found <class '(.+)'>$")
_IDENTITY = re.compile(r"^___check_(type|obj)_id\((.+), \d+\)(?:, type=(.+))?$")
_STATE = "GLOBAL_STATE changed: "
GRAD_MODE = "grad_mode"
"""The expression that is evaluated where the grad mode was another."""
_ALIAS = "Duplicate tensors found: "
_APART, _SAME = "tensors that share no memory", "the same tensor"
_DEVICE = "utils_device.CURRENT_DEVICE"
_SOURCE = re.compile(r"[LG]\[")
_HAS = "___dict_contains"
_COMMENT = re.compile(r"\s+# ")
_PLACE = re.compile(r"# (\S+):(\d+) in ")
_DICT_LENGTH = re.compile(r"^(len\(.+\)) != (\d+)$")  # torch says of dicts alone how they differ, not what was expected
_OF_SIZE = re.compile(r"\.(?:size|stride)\(\)\[\d+\]$|\.(?:storage_offset|numel)\(\)$")


class Read(NamedTuple):
    """A failed guard, and the Python expression, if any, whose value is its `actual`."""

    failed: FailedGuard
    ask: str = ""


class _Reading(NamedTuple):
    kind: FailedKind
    source: str = ""
    expected: str = ""
    actual: str = ""
    what: str = ""
    ask: str = ""


def read_failed(text: str) -> Read:
    """What the text of one entry says ("0/0: L['n'] == 3  # x * n  # m.py:3 in f"), also where locals have no L[]."""
    entry = _ENTRY.match(text)
    report, _, printed = text[entry.end() if entry else 0 :].partition(_STACK)
    code, *comment = _COMMENT.split(report.strip(), maxsplit=1)
    code = _DICT_LENGTH.sub(r"\1 == \2", code)
    stack = read_stack(printed)
    place = _PLACE.search("# " + comment[0]) if comment else None
    reading = _reading(code)
    failed = FailedGuard(
        text=report.strip(),
        kind=reading.kind,
        what=reading.what,
        against=entry[1] if entry else "",
        code=code,
        source=reading.source,
        expected=reading.expected,
        actual=reading.actual,
        file=stack[-1].file if stack else place[1] if place else "",
        line=stack[-1].line if stack else int(place[2]) if place else 0,
        stack=stack,
    )
    return Read(failed, reading.ask)


def _reading(code: str) -> _Reading:
    if found := _TENSOR.match(code):
        source, what, index, expected, actual = found.groups()
        kind: FailedKind = "size" if what in ("size", "rank") else "tensor"
        name = what if index is None else f"{what} {index}"
        if what == "requires_grad":
            needs = expected.endswith("1")
            return _Reading("tensor", source, str(needs), str(not needs), what)
        return _Reading(kind, source, expected, actual or "", name)
    if found := _TYPE.match(code):
        return _Reading("type", found[1], _class(found[2]), _class(found[3]))
    if found := _IDENTITY.match(code):
        if found[1] == "type":
            return _Reading("type", found[2], _class(found[3] or ""), ask=f"type({found[2]})")
        return _Reading("identity", found[2], f"the same {_class(found[3] or 'object')}", ask=found[2])
    if code.startswith(_STATE):
        changed = code.removeprefix(_STATE).strip()
        return _Reading("state", changed, ask=GRAD_MODE if changed == GRAD_MODE else "")
    if code.startswith(_ALIAS):
        return _Reading("alias", code.removeprefix(_ALIAS).strip(), _APART, _SAME)
    try:
        return _of_expression(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError):
        return _Reading("other")


def _of_expression(tree: ast.expr) -> _Reading:
    """Of a guard that is a Python expression."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        if _SOURCE.match(source := ast.unparse(tree.operand)):  # of a container: it was empty
            return _Reading("length", source, "0", what="length", ask=f"len({source})")
        inner = _of_expression(tree.operand)
        return inner._replace(expected=f"not {inner.expected}")
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) == _HAS and len(tree.args) == 2:
        key, source = (ast.unparse(each) for each in tree.args)
        return _Reading("key", source, f"a key {key}", ask=f"list({source})")
    return _compared(tree) if isinstance(tree, ast.Compare) else _Reading("other")


def _compared(tree: ast.Compare) -> _Reading:
    sides = [tree.left, *tree.comparators]
    texts = [ast.unparse(side) for side in sides]
    if isinstance(tree.ops[0], ast.Is | ast.IsNot) and len(sides) == 2 and all(map(_SOURCE.match, texts)):
        same = [_SAME, _APART][isinstance(tree.ops[0], ast.IsNot)]
        return _Reading("alias", f"[{', '.join(map(repr, texts))}]", same, _APART if same == _SAME else _SAME)
    if texts[0] == _DEVICE:
        return _Reading("state", "default device", texts[1], ask=_DEVICE)
    subject = next((side for side in sides if not isinstance(side, ast.Constant) and _names(side)), None)
    if subject is None:
        return _Reading("other")
    source = ask = ast.unparse(subject)
    if len(sides) == 2 and isinstance(tree.ops[0], ast.Eq | ast.Is) and subject is tree.left:
        expected = ast.unparse(sides[1])
    else:
        expected = ast.unparse(tree)
    if isinstance(subject, ast.Call) and ast.unparse(subject.func) == "len":
        return _Reading("length", ast.unparse(subject.args[0]), expected, what="length", ask=ask)
    if found := _OF_SIZE.search(source):
        what = found[0].strip(".").replace("()[", " ").rstrip("]()")
        return _Reading("size", source[: found.start()], expected, what=what, ask=ask)
    if isinstance(subject, ast.Call) and ast.unparse(subject.func) in ("type", "id"):
        return _Reading("type", ast.unparse(subject.args[0]), expected, ask=ask)
    return _Reading("value", source, expected, ask=ask)


def _names(tree: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) for node in ast.walk(tree))


def _class(name: str) -> str:
    """ "Parameter" of "torch.nn.Parameter" and of "<class 'torch.nn.Parameter'>"; "code" of a code's repr."""
    if name.startswith("<code object"):
        return "code"
    return name.removeprefix("<class '").removesuffix("'>").rpartition(".")[2]
