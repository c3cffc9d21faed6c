"""Show what the compilers made of a kernel: TTIR to SASS of a Triton kernel, the assembly of a C++ one.

A backend of others offers the forms of its kernels itself, from the highest to the lowest: each is (name, language,
text), as ("SDSC", "json", "..."). Either the object that the wrapper calls has a method `idbg_lowered()`, or a package
has a function under the entry point `idbg.lowered`, which gets that object and returns None if it is not its own.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import cast

from idbg import plugins
from idbg.engine.compat import kernels
from idbg.engine.compat.kernels import LaunchConfig
from idbg.format.amounts import size
from idbg.schema.code import Kernel, Lowered, LoweredText, Resources
from idbg.schema.errors import BadInput, typed_text

TEXTS = {".ttir": ("TTIR", "mlir"), ".ttgir": ("TTGIR", "mlir"), ".llir": ("LLVM IR", "llvm"), ".ptx": ("PTX", "ptx")}
CUBIN = ".cubin"
GROUP = "idbg.lowered"
SECONDS_OF_PLUGIN = 20
MOST = 16_000_000  # characters of a form: more is not sent to the screen
SECONDS = 60  # for a disassembler
WARP, REGISTERS_OF_A_WARP, BLOCKS = 32, 256, 32  # threads; the unit of register allocation; blocks of a multiprocessor
RESERVED = 1024  # bytes of shared memory of each block that CUDA reserves
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")


def lowered(kernel: Kernel) -> Lowered:
    """The kernel's lowered code. Raises BadInput if the kernel is not in this process, or was not lowered."""
    called = _called(kernel)
    if (offered := _offered(called, kernel.name)) is not None:
        return Lowered(offered)
    if (launch := kernels.launched(called)) is not None:
        return Lowered(tuple(_stages(launch)), _resources(launch))
    library = kernels.shared_library(called)
    if library is None:
        raise BadInput(f"{kernel.name} was not compiled here", hint="run the program again, then ask for its code")
    return Lowered((LoweredText("assembly", "asm", _assembly(library)),))


def _called(kernel: Kernel) -> object:
    """The object that the wrapper calls. Kernels of several graphs share names: the source identifies them."""
    modules = [module for module in kernels.wrapper_modules() if hasattr(module, kernel.name)]
    if not modules:
        raise BadInput(
            f"the worker no longer holds {kernel.name}, or it is an extern call", hint="run the program again"
        )
    own = (module for module in modules if module.__file__ and kernel.source in Path(module.__file__).read_text())
    return getattr(next(own, modules[0]), kernel.name)


# Kernels of other backends


def _offered(called: object, kernel: str) -> tuple[LoweredText, ...] | None:
    """What the kernel's object or a plug-in offers; None where nobody knows the object."""
    hooks = {name: partial(hook, called) for name, hook in plugins.load(GROUP).values.items() if callable(hook)}
    own = getattr(called, "idbg_lowered", None)
    for name, hook in ({"its method idbg_lowered": own} if callable(own) else hooks).items():
        try:
            forms = plugins.within(SECONDS_OF_PLUGIN, partial(_forms, hook))
        except Exception as error:  # a plug-in is code of others, and may raise anything
            problem = f"the lowered forms of {kernel} cannot be shown: {name} failed: {typed_text(error)}"
            raise BadInput(problem, hint="it must return (name, language, text) of each form") from error
        if forms is not None:
            return forms
    return None


def _forms(hook: Callable[[], object]) -> tuple[LoweredText, ...] | None:
    if (offered := hook()) is None:
        return None
    forms = tuple(LoweredText(*map(str, form)) for form in cast("Iterable[tuple[str, str, str]]", offered))
    return tuple(form if len(form.text) <= MOST else _too_long(form) for form in forms)


def _too_long(form: LoweredText) -> LoweredText:
    length, most = (size(length) for length in (len(form.text), MOST))
    return LoweredText(form.name, "text", f"{length} of {form.language}: more than the {most} that are shown")


# Triton


def _stages(launch: LaunchConfig) -> Iterator[LoweredText]:
    folder = launch.folder
    files = sorted(folder.iterdir()) if folder is not None and folder.is_dir() else []
    for suffix, (name, language) in TEXTS.items():
        yield from (LoweredText(name, language, file.read_text()) for file in files if file.suffix == suffix)
    yield from (LoweredText("SASS", "sass", _sass(file)) for file in files if file.suffix == CUBIN)


def _sass(cubin: Path) -> str:
    triton = find_spec("triton")
    roots = list(triton.submodule_search_locations or ()) if triton else []
    bundled = [Path(root) / "backends" / "nvidia" / "bin" / "nvdisasm" for root in roots]
    tool = next((str(path) for path in bundled if path.is_file()), None) or shutil.which("nvdisasm")
    return _output([tool, "-c", str(cubin)]) if tool else "there is no nvdisasm: install the CUDA toolkit"


def _resources(launch: LaunchConfig) -> Resources:
    registers, shared, warps = launch.registers, launch.shared_bytes, launch.warps
    occupancy = None
    if registers and warps and shared is not None:
        occupancy = occupied(registers, shared, warps, **kernels.limits(launch.device))
    return Resources(registers, launch.spills, shared, warps, occupancy)


def occupied(registers: int, shared: int, warps: int, *, of_registers: int, of_threads: int, of_shared: int) -> float:
    """The share of a multiprocessor's threads that can run at once, by CUDA's occupancy calculator."""
    a_warp = ceil(registers * WARP / REGISTERS_OF_A_WARP) * REGISTERS_OF_A_WARP
    by_registers = of_registers // a_warp // warps
    by_threads = of_threads // (WARP * warps)
    blocks = min(by_registers, by_threads, of_shared // (shared + RESERVED), BLOCKS)
    return blocks * warps * WARP / of_threads


# C++


def _assembly(library: Path) -> str:
    """The kernel's functions in the library, with those of its parallel loops."""
    if shutil.which("objdump") is None:
        return "there is no objdump: install binutils"
    text = _output(["objdump", "-d", "-C", "--no-show-raw-insn", str(library)])
    # the part that rarely runs is called kernel.cold or, as c++filt spells it, kernel [clone .cold]: it goes last
    parts = sorted(filter(_is_kernel, text.split("\n\n")), key=lambda part: ".cold" in part.strip().partition("\n")[0])
    return "\n\n".join(part.strip("\n") for part in parts) or text


def _is_kernel(part: str) -> bool:
    first = part.strip("\n").partition("\n")[0]
    function = _FUNCTION.match(first)
    return function is not None and function[1].startswith("kernel") and "@plt" not in function[1]


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]} failed: {error}"
    return done.stdout if done.returncode == 0 else f"{command[0]} failed: {done.stderr.strip()}"
