"""Format lines of Python.

The result is that of `ruff format --line-length 120` for the statements that graphs are written as: assignments of
calls, definitions of functions, tuples. A long line of any other kind is kept, and marked with `# fmt: skip`.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Sequence

from idbg.reduce.sources import names_read

WIDTH = 120
_INDENT = "    "
_LEFT_ALONE = "  # fmt: skip"


def laid_out(line: str, indent: int = 0, note: str = "") -> list[str]:
    """A statement, the first line of a definition, or a comment, as lines `indent` levels deep; `note` is a comment
    that ends the line of its call. Raises SyntaxError for what is no Python.
    """
    deep = len(line) - len(line.lstrip(" "))
    margin = _INDENT * indent + " " * deep
    text = line.strip()
    if not text or text.startswith("#"):
        return [(margin + text).rstrip()]
    if text.startswith(("def ", "class ", "if ", "for ", "while ", "with ", "@", "else:", "try:", "except", "finally")):
        return _header(text, margin) if text.startswith("def ") else [margin + text]
    statement = ast.parse(text).body[0]
    prefix, value = _parts(statement)
    if value is None:
        return [margin + flat(statement) + note]
    return _wrapped(margin, prefix, value, "", note)


def element(text: str, indent: int, note: str = "") -> list[str]:
    """An expression that stands on lines of its own inside of brackets, with its comma."""
    value = ast.parse(text, mode="eval").body
    return _wrapped(_INDENT * indent, "", value, ",", note, chains=True)


def flat(node: ast.AST) -> str:
    """Python on one line, with double quotes."""
    text = re.sub(r"(?<=[\w\])]) \*\* (?=-?[\w.]+)", "**", ast.unparse(node))
    return _requoted(text) if "'" in text else text


def spaced(lines: Sequence[str]) -> list[str]:
    """The lines of a block, with the empty lines around functions inside of it."""
    spread: list[str] = []
    inside: list[int] = []  # how deep the functions stand that we are in
    for line in lines:
        text = line.lstrip(" ")
        deep = len(line) - len(text)
        left = [each for each in inside if each >= deep] if not text.startswith((")", "]")) else []
        opened = not spread or spread[-1].endswith(":")
        if (left or text.startswith("def ")) and not opened and not spread[-1].lstrip().startswith("#"):
            spread.append("")
        inside = [each for each in inside if each not in left] + ([deep] if text.startswith("def ") else [])
        spread.append(line)
    return spread


def _header(text: str, margin: str) -> list[str]:
    made = ast.parse(f"{text} pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    line = f"{margin}def {made.name}({flat(made.args)}):"
    if len(line) <= WIDTH:
        return [line]
    inside = f"{margin}{_INDENT}{flat(made.args)}"
    names = [inside] if len(inside) <= WIDTH else [f"{margin}{_INDENT}{each.arg}," for each in made.args.args]
    return [f"{margin}def {made.name}(", *names, f"{margin}):"]


def _parts(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    """The text before a statement's value, and the value."""
    if isinstance(statement, ast.Assign):
        return "".join(f"{flat(target)} = " for target in statement.targets), statement.value
    if isinstance(statement, ast.Return) and statement.value is not None:
        return "return ", statement.value
    if isinstance(statement, ast.Expr):
        return "", statement.value
    return "", None


def _wrapped(margin: str, prefix: str, node: ast.expr, end: str, note: str = "", *, chains: bool = False) -> list[str]:
    """An expression after `prefix`, over as many lines as it needs."""
    line = f"{margin}{prefix}{flat(node)}{end}"
    if len(line) + len(note) <= WIDTH:
        return [line + note]
    if isinstance(node, ast.Tuple | ast.List) and node.elts:
        first, last = "()" if isinstance(node, ast.Tuple) else "[]"
        notes = [note] + [""] * len(node.elts)  # the note is of the call, which is the first element
        inside = [
            line
            for each, about in zip(node.elts, notes, strict=False)
            for line in _wrapped(margin + _INDENT, "", each, ",", about, chains=True)
        ]
        return [f"{margin}{prefix}{first}", *inside, f"{margin}{last}{end}"]
    if chains and len(links := _chain(node)) > 2:
        return [margin + each for each in (*links[:-1], links[-1] + end)]
    if isinstance(node, ast.Call) and (node.args or node.keywords):
        return _called(margin, prefix, node, end, note)
    return [line + (_LEFT_ALONE if len(line) > WIDTH else "") + note]


def _called(margin: str, prefix: str, node: ast.Call, end: str, note: str) -> list[str]:
    opening = f"{margin}{prefix}{flat(node.func)}({note}"
    given = [
        *(("", each) for each in node.args),
        *((f"{each.arg}=" if each.arg else "**", each.value) for each in node.keywords),
    ]
    inside = f"{margin}{_INDENT}{', '.join(name + flat(value) for name, value in given)}"
    if len(inside) <= WIDTH:
        return [opening, inside, f"{margin}){end}"]
    apart = [line for name, value in given for line in _wrapped(margin + _INDENT, name, value, ",", chains=True)]
    return [opening, *apart, f"{margin}){end}"]


def _chain(node: ast.expr) -> list[str]:
    """The object, then each method call of a chain."""
    calls: list[str] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inside = flat(ast.Call(ast.Name("f"), node.args, node.keywords))[1:]
        calls.insert(0, f".{node.func.attr}{inside}")
        node = node.func.value
    return [flat(node), *calls] if not isinstance(node, ast.Name) else []


def _requoted(text: str) -> str:
    """The text with double quotes around strings, where these need no backslash."""
    lines = text.splitlines(keepends=True)
    for token in reversed([*tokenize.generate_tokens(io.StringIO(text).readline)]):
        quoted = token.string
        if token.type != tokenize.STRING or not quoted.startswith("'") or '"' in quoted or "\\'" in quoted:
            continue
        row, start = token.start
        held = lines[row - 1]
        lines[row - 1] = f'{held[:start]}"{quoted[1:-1]}"{held[token.end[1] :]}'
    return "".join(lines)


def names_in(lines: Iterable[str]) -> set[str]:
    """The names that Python code reads and never binds; of those that only an inner block binds, all that it reads."""
    return names_read(ast.parse("\n".join(lines)))


def quoted(text: str) -> str:
    """A string as Python, with double quotes where these need no backslash."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain.startswith("'") and '"' not in plain and "\\'" not in plain else plain


def quotable(text: str) -> str:
    """The text as it can stand in a docstring."""
    return text.replace("\\", "/").replace('"""', "'''")
