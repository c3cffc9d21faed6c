"""The base class by which a third party lets idbg compile for its accelerator.

A subclass of `AcceleratorAdapter`, under the entry point `idbg.backends`; examples/adapter_package is a whole one.
Nothing here imports torch.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from idbg import plugins
from idbg.accelerators.model import Accelerator
from idbg.accelerators.tables import check_values, wrong_type
from idbg.constraints import BadValue, Constraint
from idbg.constraints.alignment import Alignment
from idbg.constraints.dtype import Dtype
from idbg.constraints.layout import Layout
from idbg.constraints.max_dim import MaxDim
from idbg.constraints.memory import Memory
from idbg.constraints.peak_memory import PeakMemory
from idbg.constraints.rank import Rank
from idbg.constraints.static_shapes import StaticShapes
from idbg.constraints.unknown import Unknown
from idbg.constraints.unsupported_ops import UnsupportedOps
from idbg.schema.errors import AcceleratorError, BadInput, IdbgError
from idbg.schema.programs import Failure
from idbg.schema.violations import Severity
from idbg.stages import StageText

if TYPE_CHECKING:
    from torch.fx import GraphModule

GROUP = "idbg.backends"

Callee = Callable[..., object]
"""Takes the graph's inputs in order, and gives what `graph_module(*inputs)` gives: a tuple or list of outputs."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What the hardware can do; None means that it has no such limit. `accelerator` makes rules of it.

    `dtypes` are names ("float32"). `ops` are globs of what it runs, `denied_ops` of what it does not, and `other_ops`
    says how severe it is that a program has such an op. `max_bytes` is of one tensor, `peak_bytes` of all that live at
    once. `alignment` is in elements, of `aligned_dims` as a rule of kind `alignment` names them. `rules` are any other
    ones; a kind of your own is registered by the entry point `idbg.constraints`.
    """

    dtypes: tuple[str, ...] | None = None
    ops: tuple[str, ...] | None = None
    denied_ops: tuple[str, ...] = ()
    other_ops: Severity = "reject"
    max_bytes: int | None = None
    peak_bytes: int | None = None
    alignment: int | None = None
    aligned_dims: str | tuple[int | str, ...] = "all"
    contiguous: bool = False
    max_rank: int | None = None
    max_dim: int | None = None
    dynamic_shapes: bool = True
    rules: tuple[Constraint, ...] = ()

    def accelerator(self, name: str, description: str = "") -> Accelerator:
        """These capabilities as rules, for the entry point `idbg.accelerators` and where `idbg.backend` names none.

        Raises BadInput, which names the accelerator, for a value that makes no sense.
        """
        try:
            rules = tuple(self._rules())
        except (AcceleratorError, BadValue) as error:
            raise BadInput(f"the capabilities of {name} cannot be used: {error.message}", hint=error.hint) from None
        names = [rule.name for rule in rules]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise BadInput(
                f'two rules of {name} are named "{twice}"', hint="give the one in Capabilities.rules another name"
            )
        if rules and not any(isinstance(rule, Unknown) for rule in rules):
            rules = (*rules, Unknown())  # as every accelerator file has it
        return Accelerator(name=name, description=description, rules=rules)

    def _rules(self) -> Iterator[Constraint]:
        given = {key: value for key, value in msgspec.structs.asdict(self).items() if key != "rules"}
        check_values(given, _no_line)
        try:
            checked = msgspec.convert(given, Capabilities)  # makes tuples of lists
        except msgspec.ValidationError as error:
            raise wrong_type(error, Capabilities, "Capabilities", _no_line) from None
        yield from checked._own_rules()
        rules: object = self.rules
        if not isinstance(rules, list | tuple) or not all(isinstance(rule, Constraint) for rule in rules):
            raise AcceleratorError("rules must be a list of constraints", hint="rules = [Alignment(multiple=64)]")
        yield from rules

    def _own_rules(self) -> Iterator[Constraint]:
        if self.dtypes is not None:
            yield Dtype(allowed=self.dtypes)
        if self.ops is not None or self.denied_ops:
            yield UnsupportedOps(allow=self.ops, deny=self.denied_ops, severity=self.other_ops)
        if self.max_bytes is not None:
            yield Memory(max_bytes=self.max_bytes)
        if self.peak_bytes is not None:
            yield PeakMemory(max_bytes=self.peak_bytes)
        if self.alignment is not None:
            yield Alignment(multiple=self.alignment, dims=self.aligned_dims)
        if self.contiguous:
            yield Layout(formats=("contiguous",))
        if self.max_rank is not None:
            yield Rank(max=self.max_rank)
        if self.max_dim is not None:
            yield MaxDim(max=self.max_dim)
        if not self.dynamic_shapes:
            yield StaticShapes()


def _no_line(key: str) -> int:
    return 0  # Capabilities are Python: there is no file


class CompilationStatus(StrEnum):
    """Whether an adapter compiled all of a graph, a part of it, or nothing."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"


class CompilationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one graph: all of it runs on the accelerator, part of it does, or nothing.

    `message` is one sentence for the user. `host_nodes`: of a graph that was compiled in part, the
    nodes that run on the host, and why. `stages` are shown below the graph's, from the highest to the lowest: their
    links name nodes of the graph that was compiled. Raises ValueError for no status, TypeError for what cannot be
    called.
    """

    status: CompilationStatus = CompilationStatus.FAILED
    compiled: Callee | None = None
    fallback: Callee | None = None
    message: str = ""
    host_nodes: Mapping[str, str] = {}
    stages: Sequence[StageText] = ()

    def __post_init__(self) -> None:
        if self.status not in list(CompilationStatus):
            raise ValueError(f"status is {self.status!r}; it must be one of {', '.join(CompilationStatus)}")
        for key in ("compiled", "fallback"):
            if (callee := getattr(self, key)) is not None and not callable(callee):
                raise TypeError(f"{key} is of type {type(callee).__name__}, which cannot be called")

    @property
    def callable(self) -> Callee:
        """What runs: the compiled graph, else the fallback. Raises RuntimeError where there is neither."""
        callee = self.fallback if self.compiled is None else self.compiled
        if callee is None:
            raise RuntimeError(self.message or "the graph was not compiled, and there is no fallback")
        return callee


class AcceleratorAdapter(ABC):
    """One accelerator: what it can do, and how a graph is compiled for it. Made without arguments, once a run.

    The first line of its docstring is what lists of backends say of it. It is called by its entry point's name, or, as
    an object given to `idbg.backend`, by `name`.
    """

    name: str = "adapter"
    capabilities: Capabilities = Capabilities()

    @abstractmethod
    def compile(self, graph_module: "GraphModule", inputs: Sequence[object]) -> CompilationResult:
        """Compile one ATen graph: of a training step, the forward's and then the backward's.

        `inputs` are fake tensors (shapes, strides and dtypes, no values) and symbolic sizes. Leave `graph_module` as
        it is, or change a copy. What this raises is a failed result, and its message goes to the user.
        """

    def fallback(self, graph_module: "GraphModule", inputs: Sequence[object]) -> Callee | None:
        """What runs where nothing was compiled; None, as here, makes that the end of the compile."""
        return None


class AdapterError(IdbgError):
    """An adapter compiled nothing and has no fallback, or one that fails."""

    def failure(self) -> Failure:
        """The failure of a run: the backend's, not ours or the program's."""
        return Failure(kind="backend", type=type(self).__name__, message=self.message, hint=self.hint)


def broken() -> dict[str, str]:
    """The entry points `idbg.backends` that give no backend, imported to find out: name -> what is wrong."""
    loaded = plugins.load(GROUP)
    wrong = {name: problem for name, value in loaded.values.items() if (problem := _problem(value))}
    return loaded.broken | wrong


def _problem(value: object) -> str:
    if not isinstance(value, type):
        return f"its entry point is of type {type(value).__name__}, not a class"
    if inspect.isabstract(value):
        return f"{value.__name__} does not implement {', '.join(sorted(getattr(value, '__abstractmethods__', ())))}"
    if issubclass(value, AcceleratorAdapter):
        return ""
    missing = [name for name in ("name", "checks", "compile") if not hasattr(value, name)]
    return f"{value.__name__} is no AcceleratorAdapter, and no backend: it has no {missing[0]}" if missing else ""
