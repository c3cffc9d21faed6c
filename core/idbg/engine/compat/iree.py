"""IREE's private names: capture the modules that iree-turbine compiles, and run them with values as extra outputs."""

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.analysis.stage_links.mlir import without_locations
from idbg.engine.compat.hooks import Feature, Function, Native, hooked
from idbg.engine.compat.openvino import Caller, NotRunnable, callers_in
from idbg.engine.compat.origins import origins_traced, record_origins
from idbg.engine.compat.stages import copy_of

_COMPILER = "iree.compiler"
_PROGRAMS = {"iree-compile": "iree.compiler._mlir_libs", "iree-run-module": "iree._runtime_libs"}
"""The packages that have them beside their modules."""
_SECONDS = 60.0  # of one compile or run in a process of its own: one that takes longer counts as hanging
_NODE = re.compile(r'loc\("idbg:([^"]+)"')
_TYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "i1": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


@dataclass
class IREEPart:
    """A graph that IREE compiled, with the arguments and results of its first call. `imported`: the module as text, as
    it was made of the graph; `lines`: the node of each of its lines (from 0); `received`: the text that is compiled.
    """

    gm: GraphModule
    imported: str = ""
    lines: Mapping[int, str] = field(default_factory=dict)
    received: str = ""
    flags: tuple[str, ...] = ()
    arguments: list[object] = field(default_factory=list)
    results: list[Tensor] = field(default_factory=list)
    callers: tuple[Caller, ...] = ()


@contextmanager
def observed_iree(problems: list[str]) -> Iterator[list[IREEPart]]:
    """Record each module that iree-turbine's torch backend compiles in this context."""
    observer = _Observer()
    wrappers = {
        "turbine_cpu_pass_pipeline": observer.pass_pipeline,
        "make_boxed_func": observer.make_boxed_func,
        "FxImporter.import_graph_module": observer.import_graph_module,
        "ContextCache.get_node_location": observer.get_node_location,
        "Source.wrap_buffer": observer.wrap_buffer,
        "Session.set_flags": observer.set_flags,
    }
    with hooked(Feature("IREE dispatches", problems.append), wrappers), origins_traced(problems.append):
        yield observer.parts


class _Observer:
    """Wrappers of turbine's functions. `parts`: what was compiled, in order."""

    def __init__(self) -> None:
        self.parts: list[IREEPart] = []

    def pass_pipeline(self, call: Function, gm: GraphModule, *args: object, **kwargs: object) -> object:
        record_origins(gm)
        traced = call(gm, *args, **kwargs)
        self.parts.append(IREEPart(copy_of(traced)))
        return traced

    def get_node_location(self, call: Function, importer: Native, node: Node) -> object:
        context = importer._c
        named = import_module(f"{_COMPILER}.ir").Location
        inner = call(importer, node) or named.unknown(context)
        return named.name(f"idbg:{node.name}", childLoc=inner, context=context)

    def import_graph_module(self, call: Function, importer: Native, *args: object, **kwargs: object) -> object:
        result = call(importer, *args, **kwargs)
        if self.parts:
            operation = importer.module.operation
            part = self.parts[-1]
            part.imported = _plain(operation.get_asm())
            located = operation.get_asm(enable_debug_info=True, use_local_scope=True).splitlines()
            if len(located) == len(part.imported.splitlines()):
                found = ((at, _NODE.search(line)) for at, line in enumerate(located))
                part.lines = {at: match[1] for at, match in found if match is not None}
        return result

    def wrap_buffer(self, call: Function, session: object, buffer: bytes, *args: object, **kwargs: object) -> object:
        if self.parts and not self.parts[-1].received:
            part = self.parts[-1]
            part.received = _plain(bytes(buffer).decode(errors="replace").rstrip("\0"))
            compiler = Path(import_module(f"{_COMPILER}.api").__file__ or "").parents[2]
            part.callers = tuple(callers_in("_backend", compiler))
        return call(session, buffer, *args, **kwargs)

    def set_flags(self, call: Function, session: object, *flags: str) -> object:
        if self.parts:
            self.parts[-1].flags = flags
        return call(session, *flags)

    def make_boxed_func(self, call: Function, function: Callable[..., object]) -> object:
        part = self.parts[-1] if self.parts else None

        def called(*arguments: object) -> object:
            if part is None or part.results:
                return function(*arguments)
            part.arguments = [each.detach().clone() if isinstance(each, Tensor) else each for each in arguments]
            results = function(*arguments)
            listed = results if isinstance(results, (tuple, list)) else [results]
            part.results = [each.detach().clone() for each in listed if isinstance(each, Tensor)]
            return results

        return call(called)


def _plain(text: str) -> str:
    """The text without locations, which are printed once IREE's stages were recorded in this process."""
    return without_locations(text)[0] if "loc(" in text else text


def element_type(name: str) -> torch.dtype | None:
    """The dtype of an MLIR type ("f32"); None where torch has none."""
    return _TYPES.get(name)


def element_name(dtype: torch.dtype) -> str:
    """The MLIR type of a dtype; "" where there is none."""
    return _NAMES.get(dtype, "")


def flow_of(text: str, flags: Sequence[str]) -> str:
    """The module after IREE's dispatches are formed, with the places of `text` that each op comes from. Raises
    NotRunnable.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "flow.mlir"
        source = _written(folder, text)
        _run([_tool("iree-compile"), source, *flags, "--compile-to=flow", "--mlir-print-debuginfo", "-o", str(made)])
        return made.read_text()


def values_of(
    text: str, flags: Sequence[str], arguments: Sequence[object], types: Sequence[str], *, from_flow: bool = False
) -> list[Tensor]:
    """Compile and run a module in processes of their own; its results, flat. `types` are their MLIR types ("f32").

    Raises NotRunnable.
    """
    if unknown := next((each for each in types if each not in _TYPES), ""):
        raise NotRunnable(f"torch has no {unknown}")
    with tempfile.TemporaryDirectory() as folder:
        module = str(Path(folder) / "module.vmfb")
        begin = ["--compile-from=flow"] if from_flow else []
        _run([_tool("iree-compile"), _written(folder, text), *flags, *begin, "-o", module])
        outputs = [Path(folder) / f"output{at}.bin" for at in range(len(types))]
        inputs = [_input(folder, at, value) for at, value in enumerate(arguments)]
        run = [_tool("iree-run-module"), f"--module={module}", "--device=local-sync", "--function=main"]
        _run([*run, *(f"--input={each}" for each in inputs), *(f"--output=@{each}" for each in outputs)])
        return [_read(path, _TYPES[kind]) for path, kind in zip(outputs, types, strict=True)]


def _read(path: Path, dtype: torch.dtype) -> Tensor:
    data = bytearray(path.read_bytes())
    return torch.frombuffer(data, dtype=dtype).clone() if data else torch.empty(0, dtype=dtype)


def _input(folder: str, at: int, value: object) -> str:
    if not isinstance(value, Tensor):
        return str(value)
    if value.dtype not in _NAMES:
        raise NotRunnable(f"IREE's tools read no {value.dtype}")
    path = Path(folder) / f"input{at}.bin"
    flat = value.detach().cpu().contiguous().reshape(-1)
    path.write_bytes(flat.view(torch.uint8).numpy().tobytes())
    name = "i8" if value.dtype is torch.bool else _NAMES[value.dtype]
    return f"{''.join(f'{each}x' for each in value.shape)}{name}=@{path}"


def _written(folder: str, text: str) -> str:
    path = Path(folder) / "module.mlir"
    path.write_text(text)
    return str(path)


def _tool(name: str) -> str:
    """The path of one of IREE's programs, and not of the script beside Python: that one takes 0.3 s to import IREE, and
    the program that it starts outlives it.
    """
    package = find_spec(_PROGRAMS[name])
    path = Path(package.origin).parent / name if package and package.origin else None
    if path is None or not path.exists():
        raise NotRunnable(f"IREE's package has no {name}")
    return str(path)


def _run(command: Sequence[str]) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotRunnable(f"{name} ran for more than {_SECONDS:.0f} s") from error
    except OSError as error:
        raise NotRunnable(f"{name} could not be started: {error}") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        why = next(
            (line for line in lines if "error:" in line), lines[0] if lines else f"exit status {done.returncode}"
        )
        raise NotRunnable(f"{name}: {why[:300]}")
