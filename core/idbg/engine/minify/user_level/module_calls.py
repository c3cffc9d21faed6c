"""Record the calls of a model's modules: their order, how each module is made, and its first inputs.

Run in a process of its own, as the program runs there: `python FILE PROGRAM DEVICE FOLDER` of a script that calls
`main`. It runs the program once, in eager, and leaves `calls.json` and the tensors in the folder.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec
import torch
from safetensors.torch import save_file

from idbg.engine.compat import dynamo
from idbg.engine.minify.user_level.expressions import ExpressionWriter, NoExpression, recipe
from idbg.engine.program.environment import as_main
from idbg.engine.program.load import Workload, checked, imported, on_device
from idbg.schema.programs import Program

CALLS, TENSORS = "calls.json", "tensors.safetensors"
SCRIPT = "from idbg.engine.minify.user_level.module_calls import main\n\nmain()\n"
_MOST_BYTES = 1 << 28  # of inputs: more is not kept
Init = tuple[str, frozenset[str]]


class Call(msgspec.Struct, frozen=True):
    """The first call of one module. `path`: where it is in the model, "" for the model itself; `within`: the place in
    `calls` of the module whose call it was part of, -1 for none. `made`: an expression that makes one like it, "" where
    there is none. `recipes` and `stored` are the call's arguments as Python, of tensors made up and of those kept; both
    () with `why` where they cannot be written.
    """

    path: str
    within: int
    name: str
    made: str = ""
    imports: tuple[str, ...] = ()
    training: bool = True
    dtype: str = ""
    recipes: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    file: str = ""
    lines: tuple[int, int] = (0, 0)
    why: str = ""


class RecordedModel(msgspec.Struct, frozen=True):
    """What a program's function returned, as the names to which it is unpacked, how the model is called then, and its
    modules' first calls in their order. `grad`: gradients are recorded; `compiled`: the program compiles by itself.
    """

    names: tuple[str, ...]
    call: str
    grad: bool = False
    compiled: bool = False
    calls: tuple[Call, ...] = ()


def main() -> None:
    """Record the program that the command line names."""
    program = msgspec.json.decode(sys.argv[1], type=Program)
    device, folder = sys.argv[2], Path(sys.argv[3])
    with as_main(program), torch.device(device) if device else nullcontext():
        recorded, tensors = _recorded(program, device)
    if tensors:
        save_file(tensors, folder / TENSORS)
    (folder / CALLS).write_bytes(msgspec.json.encode(recorded))


def _recorded(program: Program, device: str) -> tuple[RecordedModel, dict[str, torch.Tensor]]:
    module = imported(program)
    made: WeakKeyDictionary[torch.nn.Module, Init | None] = WeakKeyDictionary()
    with _inits_noted(module.__name__, made):
        returned = getattr(module, program.name or "program")()
    workload = checked(returned, "program()")
    names, call = _unpacked(returned, workload)
    compiled = dynamo.is_compiled(workload.model)
    recorder = _Recorder(module.__name__, made)
    if isinstance(workload.model, torch.nn.Module) and not compiled:
        recorder.run(on_device(workload, device))
    grad = workload.grad or workload.loss is not None
    return RecordedModel(names, call, grad, compiled, tuple(recorder.calls)), recorder.tensors


def _unpacked(returned: object, workload: Workload) -> tuple[tuple[str, ...], str]:
    """The names for what program() gives, and the model's call with them."""
    assert isinstance(returned, tuple)  # `checked` has seen it
    rest = list(returned[1:])
    last = ["loss"] if workload.loss is not None else []
    rest = rest[: len(rest) - len(last)]
    if rest and isinstance(rest[0], dict) and len(rest) == 1:
        return ("model", "kwargs", *last), "(**kwargs)"
    star = "*" if rest and isinstance(rest[0], (tuple, list)) else ""
    words = [name for name, _ in zip(("args", "kwargs"), rest, strict=False)]
    given = ", ".join(f"{star if name == 'args' else '**'}{name}" for name in words)
    return ("model", *words, *last), f"({given})"


class _Recorder:
    """Listens to the modules of a model."""

    def __init__(self, own: str, made: Mapping[torch.nn.Module, Init | None]) -> None:
        self.calls: list[Call] = []
        self.tensors: dict[str, torch.Tensor] = {}
        self._own, self._made = own, made
        self._stack: list[int] = []
        self._bytes = 0

    def run(self, workload: Workload) -> None:
        """Call the model once; what it raises is no matter here."""
        model = workload.model
        assert isinstance(model, torch.nn.Module)
        seen: set[str] = set()
        for path, module in model.named_modules():
            module.register_forward_pre_hook(self._before(path, seen), with_kwargs=True)
            module.register_forward_hook(self._after, always_call=True)
        grad = workload.grad or workload.loss is not None
        with suppress(Exception), torch.set_grad_enabled(grad), dynamo.nothing_compiled():
            model(*workload.args, **workload.kwargs)

    def _before(
        self, path: str, seen: set[str]
    ) -> Callable[[torch.nn.Module, tuple[object, ...], dict[str, object]], None]:
        def note(module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
            within = self._stack[-1] if self._stack else -1
            self._stack.append(len(self.calls) if path not in seen else within)
            if path not in seen:
                seen.add(path)
                self.calls.append(self._call(path, within, module, args, kwargs))

        return note

    def _after(self, module: torch.nn.Module, args: object, output: object) -> None:
        del module, args, output
        if self._stack:
            self._stack.pop()

    def _call(
        self, path: str, within: int, module: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Call:
        made, imports = self._made.get(module) or ("", frozenset())
        code = getattr(type(module).forward, "__code__", None)
        lines = [line for *_, line in code.co_lines() if line] if code else []
        dtypes = {str(each.dtype) for each in module.parameters() if each.is_floating_point()}
        known = {
            "made": made,
            "imports": tuple(sorted(imports)),
            "training": module.training,
            "dtype": dtypes.pop() if len(dtypes) == 1 else "",
            "file": code.co_filename if code else "",
            "lines": (min(lines), max(lines)) if lines else (0, 0),
        }
        given = {}
        try:
            for name, stores in (("recipes", False), ("stored", True)):
                speller = _Arguments(self._own, {}, recorder=self if stores else None)
                words = [speller.spelled(value) for value in args]
                given[name] = (*words, *(f"{key}={speller.spelled(value)}" for key, value in kwargs.items()))
        except NoExpression as thing:
            return Call(path, within, type(module).__name__, why=f"it is given {thing}", **known)  # type: ignore[arg-type]
        return Call(path, within, type(module).__name__, **given, **known)  # type: ignore[arg-type]

    def store(self, tensor: torch.Tensor) -> str:
        """Keep its values; the name under which they are. Raises NoExpression where there is no room."""
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > _MOST_BYTES or tensor.layout != torch.strided:
            raise NoExpression(f"a tensor of {tensor.layout}" if self._bytes <= _MOST_BYTES else "too large a tensor")
        name = f"x{len(self.tensors)}"
        self.tensors[name] = tensor.detach().to("cpu", copy=True).contiguous()
        return name


class _Arguments(ExpressionWriter):
    """Tensors too: made up, or those that a recorder keeps."""

    def __init__(self, own: str, made: Mapping[torch.nn.Module, str | None], recorder: _Recorder | None) -> None:
        super().__init__(own, made)
        self._recorder = recorder

    def _spelled(self, value: object) -> str:
        if not isinstance(value, torch.Tensor):
            return super()._spelled(value)
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
            raise NoExpression(f"a {type(value).__name__} of {value.layout}")
        if self._recorder is None:
            return recipe(value)
        moved = "" if value.device.type == "cpu" else f'.to("{value.device.type}")'
        return f'saved["{self._recorder.store(value)}"]{moved}'


@contextmanager
def _inits_noted(own: str, made: "WeakKeyDictionary[torch.nn.Module, Init | None]") -> Iterator[None]:
    """While it lasts, it is noted how each module is made."""
    wrapped = [cls for cls in _below(torch.nn.Module) if "__init__" in vars(cls)]
    before = {cls: vars(cls)["__init__"] for cls in wrapped}
    for cls in wrapped:
        setattr(cls, "__init__", _noting(before[cls], own, made))  # noqa: B010
    try:
        yield
    finally:
        for cls, init in before.items():
            setattr(cls, "__init__", init)  # noqa: B010


def _noting(
    init: Callable[..., None], own: str, made: "WeakKeyDictionary[torch.nn.Module, Init | None]"
) -> Callable[..., None]:
    @wraps(init)
    def noted(self: torch.nn.Module, *args: object, **kwargs: object) -> None:
        if self not in made:  # the outermost class's
            made[self] = _as_made(type(self), args, kwargs, own, made)
        init(self, *args, **kwargs)

    return noted


def _as_made(
    cls: type,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    own: str,
    made: Mapping[torch.nn.Module, Init | None],
) -> Init | None:
    speller = ExpressionWriter(
        own, {module: init[0] if init else None for module, init in made.items()} if _holds(args) else {}
    )
    try:
        words = [*map(speller.spelled, args), *(f"{key}={speller.spelled(value)}" for key, value in kwargs.items())]
        return f"{speller.named(cls)}({', '.join(words)})", frozenset(speller.imports)
    except NoExpression:
        return None


def _holds(args: Sequence[object]) -> bool:
    return any(isinstance(value, (torch.nn.Module, list, tuple)) for value in args)


def _below(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield child
        yield from _below(child)
