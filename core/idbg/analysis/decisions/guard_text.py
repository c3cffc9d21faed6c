"""Read torch's text of a failed guard: its source, what was expected, and how to evaluate what was there."""

import ast
import re
from typing import NamedTuple

from idbg.analysis.decisions.break_report import read_stack
from idbg.schema.decisions.dynamo import FailedGuard, FailedKind

_ENTRY = re.compile(r"^(\S+/\d+): ")
_STACK = "\nUser stack trace:\n"
_TENSOR = re.compile(r"^tensor '(.+)' (.+?) mismatch(?: at index (\d+))?\. expected (.+?)(?:, actual (.+))?$")
_TYPE = re.compile(r"^expected type of '(.+)' to be <class '(.+)'>, but found <class '(.+)'>$")
_IDENTITY = re.compile(r"^___check_(type|obj)_id\((.+), \d+\)(?:, type=(.+))?$")
_STATE = "GLOBAL_STATE changed: "
GRAD_MODE = "grad_mode"
"""The expression that is evaluated where the grad mode was another."""
_ALIAS = "Duplicate tensors found: "
_HAS = "___dict_contains"
_COMMENT = re.compile(r"\s+# ")
_PLACE = re.compile(r"# (\S+):(\d+) in ")
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
        return _Reading("alias", code.removeprefix(_ALIAS).strip(), "tensors that share no memory", "the same tensor")
    try:
        return _of_expression(ast.parse(code, mode="eval").body)
    except (SyntaxError, ValueError):
        return _Reading("other")


def _of_expression(tree: ast.expr) -> _Reading:
    """Of a guard that is a Python expression."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        inner = _of_expression(tree.operand)
        return inner._replace(expected=f"not {inner.expected}")
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) == _HAS and len(tree.args) == 2:
        key, source = (ast.unparse(each) for each in tree.args)
        return _Reading("key", source, f"a key {key}", ask=f"list({source})")
    return _compared(tree) if isinstance(tree, ast.Compare) else _Reading("other")


def _compared(tree: ast.Compare) -> _Reading:
    sides = [tree.left, *tree.comparators]
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
