"""Replace a kernel's source in the statement that defines it, and find its parameters and the lines of build errors."""

import ast
import re
from collections.abc import Iterator

from idbg.schema.code import Kernel, OutputCode
from idbg.schema.errors import BadInput

_ENTRY = re.compile(r'extern "C".*?\bkernel\s*\((.*?)\)\s*\{', re.DOTALL)
# the kernel's own function, and how the line ends after which its body begins
_FUNCTION = re.compile(r'^\s*(?:extern\s*"C"|(?:async )?def |__global__)')
_OPENS = ("{", ":")
_CPP_COMPUTES = re.compile(r"^\s*(?:auto|[\w:]+(?:<[^=]*>)?)\s+tmp\d+\s*=")
# what Inductor's C++ begins with: a flag of integer divisions, and other names of its buffers
_CPP_BEGINS = re.compile(r"^\s*(?:.*\binductor_cpu_integer_div_error|auto \w+ = \w*ptr\d+;\s*$)")
_NAME = re.compile(r"\s*\b(\w+)\s*$")
_CPP_ERROR = re.compile(r"^(\S*?\.(?:cpp|cc|cu)):(\d+)(?::\d+)?: (?:fatal )?error: (.*)$", re.MULTILINE)
_TRITON_ERROR = re.compile(r"^(?:.*CompilationError: )?at (\d+):(\d+):\s*$", re.MULTILINE)
_PYTHON_FRAME = re.compile(r'^\s*File "([^"]+\.py)", line (\d+)', re.MULTILINE)
_NOT_THE_KERNEL = re.compile(r"/(?:site-packages|dist-packages|torch|triton|concurrent|multiprocessing)/|/lib/python")
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)\b.*$", re.MULTILINE)


def check_edit(kernel: Kernel, code: OutputCode | None, text: str) -> None:
    """Raises BadInput where `text` cannot take the place of the kernel's source in this code."""
    name = kernel.name
    if kernel.language == "extern":
        raise BadInput(f"{name} is an op of a library: it has no source to edit", hint="edit a generated kernel")
    try:
        redefined(code.text if code is not None else "", name, text)
    except ValueError as error:
        raise BadInput(
            f"{name} cannot be replaced: {error}", hint="only a kernel of a Python wrapper can be"
        ) from error
    if text.strip() == kernel.source.strip():
        raise BadInput(f"this is the source of {name} as the compiler wrote it", hint="change it, and try it again")
    if problem := signature_problem(kernel, text, function_of(code.text if code is not None else "", name)):
        raise BadInput(
            f"the program cannot call this as {name}: {problem}", hint="keep its name and parameters: change its body"
        )


def redefined(code: str, name: str, text: str) -> str:
    """The statement of the output code that defines the kernel `name`, with `text` as its source. Of a kernel that has
    no source of its own, as `NAME = async_compile.sdsc('NAME', [OpSpec(...)])`, the text is the statement.

    Raises ValueError where no statement in the code defines the kernel, or the text is none that does.
    """
    if (found := _definition(code, name)) is None:
        raise ValueError("no statement of its wrapper defines it, as in a C++ wrapper")
    statement, call = found
    if (source := source_constant(call)) is not None:
        source.value = text if text.endswith("\n") else text + "\n"
        return ast.unparse(statement)
    if (edited := _definition(text, name)) is None:
        raise ValueError(f"the edited text does not define it: it must be Python, `{name} = ...(...)`")
    return ast.unparse(edited[0])


def function_of(code: str, name: str) -> str:
    """The function that the kernel `name` of the output code is, in a source that has several: a user's own Triton
    kernel has another name than its object in the wrapper.
    """
    match _definition(code, name):
        case (_, ast.Call(args=[ast.Constant(value=str(function)), *_])) if "\n" not in function:
            return function
        case _:
            return name


def _definition(code: str, name: str) -> tuple[ast.Assign, ast.Call] | None:
    """The statement of the code that defines the kernel, and its call; None where there is none."""
    try:
        statements = ast.parse(code).body
    except SyntaxError:
        return None
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=defined)], value=ast.Call() as call) if defined == name:
                return statement, call
            case _:
                pass
    return None


def first_line(source: str) -> int:
    """The line of a kernel's first statement, below its includes and its parameters; in Inductor's C++ that of its
    first computation, below the loops around it. 1 if it is not known.
    """
    lines = source.split("\n")
    entry = next((i for i, line in enumerate(lines) if _FUNCTION.match(line)), None)
    opened = (i for i in range(entry, len(lines)) if lines[i].rstrip().endswith(_OPENS)) if entry is not None else ()
    body = next((i + 1 for i in opened if i + 1 < len(lines)), None)
    if entry is None or body is None:
        return 1 if entry is None else entry + 1
    computes = (i for i in range(body, len(lines)) if _CPP_COMPUTES.match(lines[i]))
    begun = (i for i in range(body, len(lines)) if not _CPP_BEGINS.match(lines[i]))
    return next(computes, next(begun, body)) + 1


def source_constant(call: ast.Call) -> ast.Constant | None:
    """The one text of several lines among a call's arguments; None if there is none, or more than one."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    texts = [each for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    sources = [each for each in texts if "\n" in str(each.value).strip()]
    return sources[0] if len(sources) == 1 else None


def parameters(name: str, source: str) -> tuple[str, ...] | None:
    """The parameters of a kernel in C++ ("const float* in_ptr0") or Triton ("in_ptr0"); None where the source defines
    no such function, or is in another language.
    """
    if match := _ENTRY.search(source):
        return tuple(" ".join(each.split()) for each in match[1].split(",") if each.strip())
    try:
        functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return None
    named = [function for function in functions if function.name == name] or functions[-1:]  # "triton_", of any
    return tuple(argument.arg for function in named for argument in function.args.args) if named else None


def parameter_names(name: str, source: str) -> tuple[str, ...]:
    """The names of its parameters; none where they are not known."""
    return tuple(match[1] for each in parameters(name, source) or () if (match := _NAME.search(each)))


def signature_problem(kernel: Kernel, text: str, function: str) -> str:
    """Why the program cannot call the `function` of this source as it calls the original, as a sentence; "" where it
    can, or where only the build shows it.
    """
    if kernel.language not in ("cpp", "triton"):
        return ""
    before, now = parameters(function, kernel.source), parameters(function, text)
    if before is None:
        return ""
    if now is None:
        return (
            ""
            if kernel.language == "triton" and not _is_python(text)
            else f"it defines no kernel {_entry(kernel, function)}"
        )
    if kernel.language != "triton":  # names of parameters are the kernel's own
        before, now = tuple(map(_type, before)), tuple(map(_type, now))
    if before == now:
        return ""
    return f"its parameters are not the original's: ({', '.join(now)}) in place of ({', '.join(before)})"


def _entry(kernel: Kernel, function: str) -> str:
    return function if kernel.language == "triton" else 'extern "C" void kernel(…)'


def _type(parameter: str) -> str:
    return _NAME.sub("", parameter).replace(" *", "*")


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def build_error(function: str, text: str, output: str) -> tuple[str, int]:
    """What a compiler's output says of the first error in an edited kernel, and its 1-based line of `text`; 0 where the
    error is in no line of it.
    """
    if match := _CPP_ERROR.search(output):
        return match[3].strip(), _within(text, int(match[2]))
    *_, raised = ("", *_RAISED.findall(output.strip()))
    if match := _TRITON_ERROR.search(output):
        message = next(reversed(list(_after(output, match.end()))), raised)
        return message, _within(text, int(match[1]) + _first_line(function, text) - 1)
    own = [(file, int(line)) for file, line in _PYTHON_FRAME.findall(output) if not _NOT_THE_KERNEL.search(file)]
    return raised or output.strip().rpartition("\n")[2], _within(text, own[-1][1]) if own else 0


def without_warnings(output: str) -> str:
    """The output of a C++ compiler without its warnings: torch's headers have many. Any other output as it is."""
    if not _CPP_ERROR.search(output):
        return output
    found = re.split(r"^(?=\S+:\d+:\d+: )", output, flags=re.MULTILINE)
    errors, wanted = [], False
    for each in found:
        first = each.partition("\n")[0]
        wanted = " error: " in first or (" note: " in first and wanted)
        errors += [each] if wanted else []
    return "".join(errors)


def _after(output: str, start: int) -> Iterator[str]:
    """What Triton says below the lines of the kernel that it prints, which end with a caret."""
    below = output[start:].splitlines()
    carets = [number for number, line in enumerate(below) if line.strip() == "^"]
    for line in below[carets[0] + 1 :] if carets else ():
        if not line.strip():
            return
        yield line.strip()


def _within(text: str, line: int) -> int:
    return line if 0 < line <= len(text.splitlines()) else 0


def _first_line(function: str, text: str) -> int:
    """The line at which Triton begins to count: that of the kernel's `def`."""
    found = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("def ")]
    own = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(f"def {function}(")]
    return (own or found[-1:] or [1])[0]
