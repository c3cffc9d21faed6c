"""Read torch's comments on its settings, and the docstrings of functions that take some."""

import ast
import functools
import inspect
import re
from collections.abc import Callable

import torch

from idbg.engine.compat.names import Missing, find
from idbg.engine.compat.settings import MODULES

_MARK = re.compile(r"\[?@compile_ignored(:\s*\w+)?\]?|#?\s*\b(type|pyrefly): ignore(\s*\[[^\]]*\])?")
_ITEM = re.compile(r"\s*([-*]|\d+[.)]|[\w/\"']+:\s)")  # a line of a comment that begins an item


def option_comment(name: str) -> str:
    """The comment of one of Inductor's options; "" where there is none."""
    return _comments("torch._inductor.config").get(name, "")


def setting_comment(name: str) -> str:
    """The comment of another setting, "dynamo.recompile_limit"; "" where there is none."""
    word, _, own = name.partition(".")
    return _comments(MODULES[word].__name__).get(own, "")


def argument_comment(name: str) -> str:
    """The text on an argument in torch.compile's docstring; for "stance" in torch.compiler.set_stance's."""
    function: Callable[..., object] = torch.compiler.set_stance if name == "stance" else torch.compile
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    heads = [at for at, line in enumerate(lines) if re.match(rf"\s*{name}( \(.*?\))?:", line)]
    if not heads:
        return ""
    indent = _indent(lines[heads[0]])
    text = [lines[heads[0]].split(":", 1)[1]]
    for line in lines[heads[0] + 1 :]:
        if line.strip() and (_indent(line) < indent or re.match(rf"\s{{{indent}}}\w+( \(.*?\))?:", line)):
            break
        text.append(line[indent:])
    return _joined(text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@functools.cache
def _comments(module: str) -> dict[str, str]:
    """The comments of a module's settings: the text above, beside or below each assignment."""
    try:
        text = inspect.getsource(find(module))
    except (OSError, Missing):
        return {}
    lines = text.splitlines()
    return {name: comment for name, comment in _of_body(ast.parse(text).body, "", lines) if comment}


def _of_body(body: list[ast.stmt], prefix: str, lines: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for at, node in enumerate(body):
        if isinstance(node, ast.ClassDef):
            found += _of_body(node.body, f"{prefix}{node.name}.", lines)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            below = body[at + 1] if at + 1 < len(body) else None
            comment = _above(node, lines) or _beside(node, lines) or _below(below)
            found += [(prefix + target.id, comment) for target in targets if isinstance(target, ast.Name)]
    return found


def _above(node: ast.stmt, lines: list[str]) -> str:
    first = node.lineno - 1
    while first and lines[first - 1].strip().startswith("#"):
        first -= 1
    return _joined([line.strip().lstrip("#") for line in lines[first : node.lineno - 1]])


def _beside(node: ast.stmt, lines: list[str]) -> str:
    rest = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode()
    return _joined([rest.partition("#")[2]])


def _below(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return _joined(inspect.cleandoc(node.value.value).splitlines())
    return ""


def _joined(lines: list[str]) -> str:
    """The lines as paragraphs: a new line only where a list, an example or a paragraph begins."""
    text, in_item = "", False
    for line in lines:
        marked = _MARK.sub("", line).rstrip()
        bare = marked.strip()
        is_item = _ITEM.match(marked) is not None
        example = marked.startswith("  ") and not in_item and not is_item
        begins = example or is_item
        in_item = bool(bare) and (is_item or (in_item and not begins))
        if not bare:
            text += "\n\n"
            continue
        text += ("\n" if begins else "" if text.endswith("\n") else " ") + (marked if example else bare)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
