"""Write a repro's script: plain Python that anybody can read, run and reduce further."""

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import TypeGuard

from idbg.engine.repro import checks
from idbg.engine.repro.check_pieces import CheckCode
from idbg.engine.repro.draft import MARK, Breaks, Draft, FailsCommand, Heading, Input, Runs
from idbg.engine.repro.layout import element, laid_out, names_in, quotable, spaced
from idbg.reduce.sources import bound_by_imports

_PRINTED = {"device", "inf", "nan", "operator"}  # names that graphs are printed with, which they may also have
_NO_CACHES = "torch._inductor.config.force_disable_caches = True  # their keys do not hold the code above"
_MODULES = {"idbg", "numpy", "operator", "os", "signal", "subprocess", "sys", "torch", "traceback"}
_MEMBERS = {
    "contextlib": {"nullcontext", "suppress"},
    "pathlib": {"Path"},
    "safetensors.torch": {"load_file"},
    "torch": {"device", "inf", "nan"},
    "torch.testing._comparison": {"default_tolerances"},
    "torch.utils._python_dispatch": {"TorchDispatchMode"},
    "torch.utils._pytree": {"keystr", "tree_leaves", "tree_leaves_with_path", "tree_map_only"},
}
_HELD = "__of_the_program"  # suffix of the user's names while the script's own are renamed
_WEIGHT = ("def weight(tensor):", "    return torch.nn.Parameter(tensor, requires_grad=False)")
_DYNAMIC = (
    "def dynamic(tensor, *dims):",
    '    """These sizes may change: they are symbols to the compiler."""',
    "    torch._dynamo.maybe_mark_dynamic(tensor, dims)",
    "    return tensor",
)
_MARKED = (
    "def marked(tensor, *dims):",
    '    """These sizes must change: torch refuses to make them constants."""',
    "    torch._dynamo.mark_dynamic(tensor, dims)",
    "    return tensor",
)


def render(draft: Draft, heading: Heading) -> str:
    """The script of a draft, as `ruff format` would leave it.

    It exits 1 and prints a line `REPRODUCED <signature>` where it fails as its check says, 0 where it does not fail,
    and 2 with a line `OTHER <type>: <first line of its message>` where it fails in another way. It reads stored
    arguments from `tensors.safetensors` beside it.
    """
    taken = bound_at_top(draft.definitions)
    checked = checks.lines_of(draft)
    clashing = taken & bound_in(_own(draft, checked))
    if clashing:
        checked = checks.lines_of(replace(draft, how=held_apart(draft.how, clashing)))
    code = _code(draft, checked, clashing)
    imports = _imports(draft, code)
    begins = "" if (draft.settings or checked.constants) and not draft.definitions else "\n"
    parts = [_docstring(draft, heading), "", *imports, begins, *code]
    return "\n".join(parts) + "\n"


def _code(draft: Draft, checked: CheckCode, clashing: Set[str]) -> list[str]:
    """All below the imports; what is the script's own has other names than `clashing`."""
    constants = [
        re.sub(r"^[A-Z, ]+(?= = )", lambda names: renamed([names[0]], clashing)[0], line) for line in checked.constants
    ]
    settings = [*([_NO_CACHES] if _lowers(draft) else []), *draft.settings]
    head = [line for setting in (*settings, *constants) for line in setting.splitlines()]
    own = [renamed(each, clashing) for each in (*_helpers(draft), _inputs(draft), *checked.blocks)]
    definitions = [definition.strip("\n").splitlines() for definition in draft.definitions]
    blocks = [*definitions, *([head] if head else []), _program(draft, clashing), *own]
    return [*_joined(blocks), "", "", 'if __name__ == "__main__":', *renamed(checked.ending, clashing)]


def _lowers(draft: Draft) -> bool:
    """Whether it brings code that lowers graphs: whoever edits that shall not find what it gave before."""
    return any("_inductor" in text for text in (*draft.definitions, *draft.imports)) and bool(draft.definitions)


def _joined(blocks: list[list[str]]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        lines += [*([""] * 2 if lines else []), *block]
    return lines


def _docstring(draft: Draft, heading: Heading) -> str:
    lines = [quotable(heading.title).strip() or "It fails.", ""]
    if heading.message:
        lines += [*(f"    {quotable(line)}".rstrip() for line in heading.message), ""]
    lines += textwrap.wrap(quotable(heading.note), 118) if heading.note else []
    source = f"From {quotable(heading.source)}, w" if heading.source else "W"
    lines += [f"{source}ritten with {heading.versions}. Run it: python repro.py", *textwrap.wrap(_exits(draft), 118)]
    text = "\n".join(lines)
    return f'"""{text}\n"""'


def _exits(draft: Draft) -> str:
    match draft.check:
        case Runs():
            return "It prints how far compiled and eager are apart, and exits 0; 2 if it fails."
        case Breaks(subject=subject):
            what = {"node": "the node", "input": "the argument", "graph": "the graph"}[subject]
            return f"It exits 1 and prints REPRODUCED if {what} still breaks the rule, 0 if not."
        case FailsCommand(command=command, status=status):
            words = " ".join(command)
            return (
                f"It exits 1 and prints REPRODUCED if `{words} repro.py` still exits {status}, 0 if it exits 0, else 2."
            )
    return "It exits 1 and prints REPRODUCED if it still fails so, 0 if it does not fail, 2 if it fails in another way."


def _own(draft: Draft, checked: CheckCode) -> list[str]:
    """The script's own code, without the user's code and the program."""
    blocks = [["def program():", "    pass"], *_helpers(draft), _inputs(draft), *checked.blocks]
    ending = ["def ended():", *checked.ending]
    return [line for each in (*blocks, checked.constants, ending) for line in each]


def _program(draft: Draft, clashing: Set[str] = frozenset()) -> list[str]:
    lines: list[str] = []
    for line in draft.statements:
        text, marked = line.removesuffix(MARK), line.endswith(MARK)
        lines += laid_out(text, 1, MARK if marked else "")
    name = renamed(["program"], clashing)[0]
    head = laid_out(f"def {name}({', '.join(argument.name for argument in draft.arguments)}):")
    return [*head, *spaced(lines), *laid_out(f"return {draft.result}", 1)]


def _helpers(draft: Draft) -> list[list[str]]:
    """Functions that make the arguments what they are to the compiler."""
    needed: list[list[str]] = []
    if any(argument.is_weight for argument in draft.arguments):
        needed.append([*_WEIGHT])
    if any(argument.dynamic for argument in draft.arguments):
        needed.append([*_DYNAMIC])
    if any(argument.marked for argument in draft.arguments):
        needed.append([*_MARKED])
    return needed


def _inputs(draft: Draft) -> list[str]:
    values = f" {quotable(draft.values).strip()}".rstrip(".") if draft.values else ""
    lines = [
        "def inputs():",
        *textwrap.wrap(f'"""Values:{values}."""', 112, initial_indent="    ", subsequent_indent="    "),
    ]
    if any(argument.is_stored for argument in draft.arguments):
        lines.append('    saved = load_file(Path(__file__).with_name("tensors.safetensors"))')
    if any("rand" in argument.recipe for argument in draft.arguments):
        lines.append("    torch.manual_seed(0)")
    given = [(argument.text, _note(argument)) for argument in draft.arguments]
    if not given:
        return [*lines, "    return ()"]
    alone = f"    return ({given[0][0]},)"
    if len(given) == 1 and not given[0][1]:
        return [*lines, *laid_out(alone.strip(), 1)]
    return [*lines, "    return (", *(line for text, note in given for line in element(text, 2, note)), "    )"]


def _note(argument: Input) -> str:
    return f"  # {argument.name}" if argument.literal or argument.recipe else ""


def _imports(draft: Draft, code: list[str]) -> list[str]:
    """The imports of names that the code uses, and of packages that register its ops."""
    used = names_in(code)
    lines = {f"import {name}" for name in _MODULES & used}
    lines |= {
        f"from {home} import {', '.join(sorted(names & used))}" for home, names in _MEMBERS.items() if names & used
    }
    for name in draft.imports - _MODULES:
        line = name if name.startswith(("import ", "from ")) else f"import {name}"
        lines.add(line if bound_by_imports(ast.parse(line)) & used else f"{line}  # noqa: F401")
    own = sorted((line for line in lines if _root(line) in sys.stdlib_module_names), key=_order)
    others = sorted((line for line in lines if _root(line) not in sys.stdlib_module_names), key=_order)
    return [*own, *([""] if own and others else []), *others]


def _root(line: str) -> str:
    return line.split()[1].partition(".")[0]


def _order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line.split()[1].lower()


def bound_at_top(definitions: Iterable[str]) -> set[str]:
    """The names that sources give to their module."""
    found: set[str] = set()
    for node in (node for source in definitions for node in ast.parse(source).body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= bound_by_imports(node)
        else:
            found |= {each.id for each in ast.walk(node) if _is_stored(each)}
    return found


def bound_in(code: Sequence[str]) -> set[str]:
    """All names that code of the script's own gives a value to: of functions, arguments, variables."""
    nodes = list(ast.walk(ast.parse("\n".join(code))))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    return functions | arguments | errors | {node.id for node in nodes if _is_stored(node)}


def held_apart(expression: str, names: Iterable[str]) -> str:
    """An expression of the user's names, as it stands in the script's own lines until these are `renamed`."""
    for name in names:
        expression = _named(name).sub(name + _HELD, expression)
    return expression


def renamed(lines: Sequence[str], names: Iterable[str]) -> list[str]:
    """The script's own lines with other names for these, and the user's as they are."""
    text = "\n".join(lines)
    for name in names:
        text = _named(name).sub(f"its_{name}", text)
    return text.replace(_HELD, "").split("\n")


def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.\"']){name}(?![\w\"'])")


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
