"""Is each statement still needed, now that sizes and values are others than those with which that was asked?"""

import ast
from dataclasses import replace

from idbg.engine.minify.shrink.extras import used_alone
from idbg.engine.minify.shrink.fills import Fill, Form, contiguous
from idbg.engine.minify.shrink.hunt import Hunt
from idbg.engine.minify.shrink.literals import names
from idbg.engine.minify.shrink.parts import Argument, Parts
from idbg.engine.minify.shrink.plausible import Plausible
from idbg.engine.repro.draft import MARK, Input


def sweep_statements(hunt: Hunt) -> None:
    """Leaves out single statements, from the last to the first, until none can be: what they gave is made instead.

    Nothing is asked of a statement alone, nor where it is not known what the statements give.
    """
    at = len(hunt.parts.draft.statements)
    while hunt.allows.is_known and at:
        at -= 1
        if hunt.take(without_statement(hunt.parts, at, hunt.allows)):
            at = len(hunt.parts.draft.statements)


def without_statement(parts: Parts, at: int, plausible: Plausible) -> Parts | None:
    """The parts without the line at this place; None where it is no assignment of one tensor, or the only one."""
    lines = list(parts.draft.statements)
    name = _assigned(lines[at])
    if name is None or lines[at].endswith(MARK) or sum(_assigned(line) is not None for line in lines) < 2:
        return None
    form = plausible.ran(parts).forms.get(name)
    before = names([lines[at].partition("=")[2].strip()])
    rest = [*lines[:at], *lines[at + 1 :]]
    if at and lines[at - 1].startswith("#") and (at + 1 == len(lines) or lines[at + 1].startswith("#")):
        del rest[at - 1]  # the user's line of it alone
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
    """What is returned without `name`: the others, else what it was made of by the lines that are left."""
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
