"""Try again to leave out each statement, now that sizes and values have changed."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.extras import used_alone
from idbg.engine.minify.shrink.fills import Fill, Form, contiguous
from idbg.engine.minify.shrink.literals import names, renamed
from idbg.engine.minify.shrink.parts import Argument, Parts
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure
from idbg.engine.repro.draft import MARK, Input


def sweep_statements(smallest: SmallestFailure) -> None:
    """Leaves out single statements, from the last to the first, until none can be: what they gave is made instead, or
    one of their operands takes their place.

    A single statement is not tried. If the results of statements are unknown, none is replaced by a new tensor.
    """
    at = len(smallest.parts.draft.statements)
    while at:
        at -= 1
        made = without_statement(smallest.parts, at, smallest.allows) if smallest.allows.is_known else None
        if smallest.take(made) or any(
            map(smallest.take, sorted(with_operands(smallest.parts, at, smallest.allows), key=Parts.size))
        ):
            at = len(smallest.parts.draft.statements)


def with_operands(parts: Parts, at: int, dry_run: DryRun) -> Iterator[Parts]:
    """The parts with each operand of the assignment at this place in its place: f(x) where it was f(g(x)). Where forms
    are known, with those of the same form.
    """
    lines = parts.draft.statements
    name = _assigned(lines[at])
    if name is None or lines[at].endswith(MARK):
        return
    rest = _without_line(lines, at)
    bound = {each.input.name for each in parts.arguments} | {_assigned(line) for line in rest[:at]}
    forms = dry_run.ran(parts).forms if dry_run.is_known else {}
    for operand in sorted(names([lines[at].partition("=")[2].strip()]) & bound):
        if forms.get(operand) != forms.get(name):
            continue
        statements = renamed(rest, name, operand)
        result = renamed([parts.draft.result], name, operand)[0]
        if names([result]) & {_assigned(line) for line in statements}:  # else nothing is left that is compiled
            left = replace(parts, draft=replace(parts.draft, statements=statements, result=_once(result)))
            yield used_alone(left) or left


def _without_line(lines: Sequence[str], at: int) -> list[str]:
    """The lines without one of them, and without the user's line of it alone."""
    rest = [*lines[:at], *lines[at + 1 :]]
    if at and lines[at - 1].startswith("#") and (at + 1 == len(lines) or lines[at + 1].startswith("#")):
        del rest[at - 1]
    return rest


def _once(result: str) -> str:
    """A tuple of names with each of them once."""
    tree = ast.parse(result, mode="eval").body
    if not isinstance(tree, ast.Tuple) or not all(isinstance(each, ast.Name) for each in tree.elts):
        return result
    return f"({', '.join(dict.fromkeys(map(ast.unparse, tree.elts)))},)"


def without_statement(parts: Parts, at: int, dry_run: DryRun) -> Parts | None:
    """The parts without the line at this place; None where it is no assignment of one tensor, or the only one."""
    lines = parts.draft.statements
    name = _assigned(lines[at])
    if name is None or lines[at].endswith(MARK) or sum(_assigned(line) is not None for line in lines) < 2:
        return None
    form = dry_run.ran(parts).forms.get(name)
    before = names([lines[at].partition("=")[2].strip()])
    rest = _without_line(lines, at)
    arguments = parts.arguments
    if name in names(rest):
        if form is None or any(each.input.name == name for each in arguments):
            return None
        shape, dtype = tuple(form[0]), form[1]
        device = next((each.form.device for each in arguments if each.form is not None), "cpu")
        made = Form(shape, contiguous(shape), dtype, device)
        given = Input(name, made.shape, made.stride, device)
        is_real = dtype.is_floating_point or dtype.is_complex
        arguments = (*arguments, Argument(given, made, Fill("ones" if is_real else "zeros")))
    result = _result(parts.draft.result, name, rest, before)
    if result is None:
        return None
    left = replace(parts, arguments=arguments, draft=replace(parts.draft, statements=tuple(rest), result=result))
    return used_alone(left) or left


def _result(result: str, name: str, rest: list[str], read: frozenset[str]) -> str | None:
    """The result without `name`: the other names, or the names that it was computed from."""
    if name not in names([result]):
        return result
    own = {made for line in rest if (made := _assigned(line)) is not None}
    tree = ast.parse(result, mode="eval").body
    if not isinstance(tree, ast.Tuple) or not all(isinstance(each, ast.Name) for each in tree.elts):
        return None
    kept = [each.id for each in tree.elts if isinstance(each, ast.Name) and each.id != name]
    kept += [each for each in sorted(read & own) if each not in kept]
    return f"({', '.join(kept)},)" if kept else None


def _assigned(line: str) -> str | None:
    """The name that a line gives a value to."""
    try:
        body = ast.parse(line).body
    except SyntaxError:
        return None
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or not isinstance(body[0].targets[0], ast.Name):
        return None
    return body[0].targets[0].id
