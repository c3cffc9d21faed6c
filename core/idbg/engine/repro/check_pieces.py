"""The parts that the checks of all scripts share: the failing call, its modes, the rules, the ending."""

from collections.abc import Sequence
from dataclasses import dataclass

from idbg.engine.repro.draft import Draft
from idbg.engine.repro.error_message import MEMORY_FAULT, MEMORY_FAULTS
from idbg.engine.repro.layout import laid_out


@dataclass(frozen=True)
class CheckCode:
    """The code of a script's check: constants, functions, and the ending."""

    blocks: Sequence[list[str]]
    constants: Sequence[str] = ()
    ending: Sequence[str] = ("    sys.exit(main())",)


_WHERE = "  # CUDA names a wrong address by where it falls"
_OTHER = (
    "except Exception as error:",
    "    traceback.print_exc()",
    '    root = getattr(error, "inner_exception", error)',
    '    print(f"OTHER {type(root).__name__}: {str(root).strip().partition(chr(10))[0]}")',
    "    sys.exit(2)",
)


def guarded(*lines: str) -> list[str]:
    """The ending of a script in which an exception is another failure."""
    return indented(["try:", *indented(lines), *_OTHER])


def toml_of(draft: Draft) -> list[str]:
    """The accelerator's rules as a constant."""
    if not draft.rules:
        return []
    text = draft.rules.strip("\n").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return ['RULES = """', *text.splitlines(), '"""']


def says(error: str, piece: str, sought: str) -> str:
    """Whether a `link` has the message, as Python: `sought` with its text, a C++ compiler's with plain quotes, as some
    locales have them; of a memory fault, any name.
    """
    if piece == MEMORY_FAULT:
        return "any(fault in str(link) for fault in FAULTS)"
    return sought.format("str(link).translate({0x2018: 39, 0x2019: 39})" if error == "CppCompileError" else "str(link)")


def faults_of(piece: str) -> list[str]:
    """The names of a memory fault as a constant."""
    return laid_out(f"FAULTS = {MEMORY_FAULTS!r}", note=_WHERE) if piece == MEMORY_FAULT else []


def under(modes: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The lines within the modes that the program compiles under."""
    if not modes:
        return list(lines)
    return [f"with {', '.join(modes)}:", *indented(lines)]


def indented(lines: Sequence[str], levels: int = 1) -> list[str]:
    """The lines, so many levels deeper."""
    return [f"{'    ' * levels}{line}" if line else "" for line in lines]


def compiled(draft: Draft) -> str:
    """The program as it is compiled."""
    return f"torch.compile(program, {draft.how})" if draft.how else "torch.compile(program)"


def called(draft: Draft) -> list[str]:
    """The failing call, with its backward where a gradient is wanted."""
    call = f"{compiled(draft)}(*inputs())"
    wait = ["torch.cuda.synchronize()"] if on_cuda(draft) else []  # a kernel's error is raised here
    if not trains(draft):
        return [*under(draft.modes, [call]), *wait]
    ends = "[leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]"
    backward = "torch.autograd.backward(outputs, [torch.ones_like(leaf) for leaf in outputs])"
    return [*under(draft.modes, [f"result = {call}"]), f"outputs = {ends}", backward, *wait]


def on_cuda(draft: Draft) -> bool:
    """Whether an argument is on a GPU."""
    return any("cuda" in argument.device or "cuda" in argument.recipe for argument in draft.arguments)


def trains(draft: Draft) -> bool:
    """Whether a gradient of an argument is wanted."""
    return any(argument.requires_grad for argument in draft.arguments)
