"""Which kernels does Inductor's output code hold, where is each called, and what does each call compute?

Generated kernels are module-level assignments, `NAME = async_compile.LANG(..., '''source''', ...)`; extern ops
appear as calls only. Each call stands below a comment with Inductor's debug handles: `# [Provenance debug handles]
NAME:3`.
"""

import ast
import re
from collections.abc import Mapping, Sequence

from idbg.records import Kernel, KernelCall, OutputCode, Part

_HANDLES = re.compile(r"#\s*\[Provenance debug handles\]\s*(.+?)\s*$")
_AOT_ID = re.compile(r"# AOT ID: \['\d+_(forward|backward|inference)'\]")
_NEAR = 8  # lines below its comment within which a call stands
_LANGUAGES = {"cpp_pybinding": "cpp", "cpp": "cpp", "triton": "triton"}
_PARTS: dict[str, Part] = {"forward": "forward", "backward": "backward", "inference": "inference"}


def part_of(text: str) -> Part:
    """Which graph this code was generated for; "" where its first line does not say."""
    match = _AOT_ID.search(text[:400])
    return _PARTS[match[1]] if match else ""


def read_output_code(
    text: str, *, frame: str, part: Part, handles: Mapping[str, Sequence[str]] | None = None
) -> OutputCode:
    """The code with its kernels. `handles` maps Inductor's debug handles ("NAME:3") to post-grad node names.

    Raises ValueError where the text is not Python.
    """
    handles = handles or {}
    calls: dict[str, list[KernelCall]] = {}
    for handle, line in _calls(text):
        calls.setdefault(handle.rpartition(":")[0], []).append(KernelCall(handle, line, tuple(handles.get(handle, ()))))
    defined = {
        name: Kernel(
            frame=frame,
            part=part,
            name=name,
            language=language,
            source=source,
            line=line,
            calls=tuple(calls.get(name, ())),
        )
        for name, language, source, line in _definitions(text)
    }
    extern = [
        Kernel(frame=frame, part=part, name=name, language="extern", calls=tuple(found))
        for name, found in calls.items()
        if name not in defined
    ]
    kernels = sorted([*defined.values(), *extern], key=lambda kernel: kernel.calls[0].line if kernel.calls else 1 << 30)
    return OutputCode(frame, part, text, tuple(kernels))


def _definitions(text: str) -> list[tuple[str, str, str, int]]:
    """(name, language, source, 1-based line) of each kernel defined at module level."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} of the output code is not Python: {error.msg}") from error
    found = []
    for statement in module.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="async_compile"), attr=language)) as call,
            ):
                source = max((_string(argument) for argument in call.args), key=len, default="")
                found.append((name, _LANGUAGES.get(language, language), source.strip("\n") + "\n", statement.lineno))
            case _:
                pass
    return found


def _string(argument: ast.expr) -> str:
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else ""


def _calls(text: str) -> list[tuple[str, int]]:
    """(debug handle, 1-based line of the call below its comment), in order."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := _HANDLES.search(line):
            found += [(handle.strip(), _called_below(lines, number, handle)) for handle in match[1].split(",")]
    return found


def _called_below(lines: Sequence[str], comment: int, handle: str) -> int:
    """The next line that names the kernel: on a GPU a line that gets the stream may stand between. Else the next
    statement.
    """
    name = handle.strip().rpartition(":")[0]
    below = [
        number
        for number in range(comment + 1, min(comment + 1 + _NEAR, len(lines)))
        if not lines[number].lstrip().startswith("#")
    ]
    named = (number for number in below if name in lines[number])
    return next(named, below[0] if below else comment) + 1
