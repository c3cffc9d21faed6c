"""Where does torch decide whether calls of a graph become a CUDA graph, and why not?"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, NamedTuple, Protocol, cast

import torch
import torch._inductor.config
from torch.fx import Node

from idbg.engine.compat.autotuning import Safely
from idbg.engine.compat.patched import patched, when_lowering
from idbg.engine.compat.tracing import current_frame

OTHER_SIZES = "its sizes are others: torch records one for each"
OTHER_PLACE = "it follows another CUDA graph than before"


class Said(NamedTuple):
    """What became of a CUDA graph, in which compile (torch's id) and part. `message`: torch's, with the user's stack
    in it; `node`: of the post-grad graph, where one is the reason.
    """

    frame: str
    part: str
    outcome: Literal["ready", "captured", "rerecorded", "split", "skipped"]
    message: str = ""
    node: str = ""


Tell = Callable[[Said], None]


class _Info(Protocol):
    cudagraph_fail_reasons: Sequence[str]


class _Compiled(Protocol):
    """A compiled graph, as torch has it."""

    disabled_cudagraphs_reason: str | None
    cudagraph_info: _Info | None
    partition_maps: Sequence[object] | None


class _Buffer(Protocol):
    def get_origin_node(self) -> Node | None: ...

    def get_origins(self) -> Iterable[Node]: ...


class _Op(Protocol):
    """A node of the scheduler's."""

    node: _Buffer | None

    def get_nodes(self) -> "Sequence[_Op]": ...


class _Signature(Protocol):
    skip_cudagraph: bool


class _Scheduler(Protocol):
    def should_partition(self, node: _Op) -> str | None: ...


class _FunctionId(Protocol):
    id: int

    def __hash__(self) -> int: ...


class _Recording(Protocol):
    children: "Mapping[_FunctionId, Sequence[_Recording]]"

    def check_invariants(self, inputs: list[object]) -> tuple[object, Callable[[], str]]: ...


class _Function(Protocol):
    model: object


class _Mode(Protocol):
    name: str


class _Manager(Protocol):
    """What holds the recordings of a device."""

    ids_to_funcs: Mapping[_FunctionId, _Function]
    id_to_compile_id: Mapping[_FunctionId, object]
    id_to_mode: Mapping[_FunctionId, _Mode]
    roots: Mapping[_FunctionId, Sequence[_Recording]]
    current_node: _Recording | None


@contextmanager
def cuda_graphs_told(tell: Tell, safely: Safely) -> Iterator[None]:
    """Tell of each compiled graph whether it can be a CUDA graph, and of each recording as it is made."""
    with ExitStack() as stack:
        recordings = _Recordings(tell, safely)

        @contextmanager
        def patches() -> Iterator[None]:
            _compiled(tell, safely, recordings, stack)
            _partitioned(tell, safely, stack)
            yield

        stack.enter_context(when_lowering(patches))
        yield


def _asked(cudagraphs: object = None) -> bool:
    return bool(torch._inductor.config.triton.cudagraphs or cudagraphs)


def _compiled(tell: Tell, safely: Safely, recordings: "_Recordings", stack: ExitStack) -> None:
    from torch._inductor import compile_fx, output_code

    def post_compile(original: Callable[..., object]) -> Callable[..., object]:
        def compiled(graph: _Compiled, inputs: object, constants: object, how: Mapping[str, object]) -> object:
            asked = _asked(how.get("cudagraphs"))
            result = original(graph, inputs, constants, how)
            if asked:
                of_graph(graph, how)
            return result

        return compiled

    @safely
    def of_graph(graph: _Compiled, how: Mapping[str, object]) -> None:
        part = "backward" if how.get("is_backward") else "inference" if how.get("is_inference") else "forward"
        reasons: Sequence[str] = [graph.disabled_cudagraphs_reason] if graph.disabled_cudagraphs_reason else ()
        reasons = reasons or (graph.cudagraph_info.cudagraph_fail_reasons if graph.cudagraph_info else ())
        if not reasons and torch._inductor.config.graph_partition and not graph.partition_maps:
            reasons = ["no op of it can be in one"]
        for reason in reasons:
            tell(Said(current_frame(), part, "skipped", reason))
        if not reasons:
            recordings.listen(stack)
            tell(Said(current_frame(), part, "ready"))

    def logged(original: Callable[[str], None]) -> Callable[[str], None]:
        def skipped(message: str) -> None:
            of_log(message)
            original(message)

        return skipped

    @safely
    def of_log(message: str) -> None:
        tell(Said(current_frame(), "", "skipped", message))

    stack.enter_context(patched(output_code.CompiledFxGraph, "post_compile", post_compile))
    stack.enter_context(patched(compile_fx, "log_cudagraph_skip_and_bump_counter", logged))


def _partitioned(tell: Tell, safely: Safely, stack: ExitStack) -> None:
    from torch._inductor.scheduler import Scheduler
    from torch._inductor.virtualized import V

    def partition(original: Callable[..., object]) -> Callable[..., object]:
        def partitioned(scheduler: _Scheduler) -> object:
            made = original(scheduler)
            if _asked():
                of_partitions(scheduler, *cast("tuple[object, object]", made))
            return made

        return partitioned

    @safely
    def of_partitions(
        scheduler: _Scheduler, partitions: Sequence[Sequence[_Op]], signatures: Sequence[_Signature]
    ) -> None:
        part = "backward" if V.graph.is_backward else "inference" if V.graph.is_inference else "forward"
        for nodes, signature in zip(partitions, signatures, strict=True):
            for node in nodes if signature.skip_cudagraph else ():
                for reason, origin in _reasons(scheduler, node):
                    stack_trace = str(origin.meta.get("stack_trace") or "") if origin is not None else ""
                    name = origin.name if origin is not None else ""
                    tell(Said(current_frame(), part, "split", f"{reason} Found from : \n{stack_trace}", name))

    stack.enter_context(patched(Scheduler, "graph_partition", partition))


def _reasons(scheduler: _Scheduler, node: _Op) -> Iterator[tuple[str, Node | None]]:
    """Why each op that the scheduler has in this node is not in a CUDA graph, and its FX node."""
    for each in node.get_nodes():
        reason = scheduler.should_partition(each)
        if reason and each.node is not None:
            yield str(reason), each.node.get_origin_node() or next(iter(each.node.get_origins()), None)


class _Recordings:
    """What is recorded as the program runs. A graph that is recorded once more is told with the reason."""

    def __init__(self, tell: Tell, safely: Safely) -> None:
        self._tell, self._tell_safely = tell, safely(tell)
        self._note, self._skip = safely(self._noted), safely(self._skipped)
        self._listening = False
        self._known: dict[tuple[str, int], set[int]] = {}  # of each compile and compiled function its ids

    def listen(self, stack: ExitStack) -> None:
        """Hear of recordings from here on: only now there is a GPU to import what records."""
        if self._listening or not torch.cuda.is_available():
            return
        self._listening = True
        from torch._inductor import cudagraph_trees as trees

        stack.enter_context(patched(trees.CUDAGraphTreeManager, "record_function", self._recording))
        stack.enter_context(patched(trees, "log_cudagraph_skip_and_bump_counter", self._logging))

    def _recording(self, original: Callable[..., object]) -> Callable[..., object]:
        def recorded(manager: _Manager, inputs: list[object], function_id: _FunctionId) -> object:
            said: list[Said] = []
            self._note(said, manager, list(inputs), function_id)
            result = original(manager, inputs, function_id)
            for each in said:  # it was recorded, and did not fail meanwhile
                self._tell_safely(each)
            return result

        return recorded

    def _noted(self, said: list[Said], manager: _Manager, inputs: list[object], function_id: _FunctionId) -> None:
        frame, part = self._of(manager, function_id)
        model = id(manager.ids_to_funcs[function_id].model)
        ids = self._known.setdefault((frame, model), set())
        if not ids:
            said.append(Said(frame, part, "captured"))
        else:
            reason = self._why(manager, inputs, function_id) if function_id.id in ids else OTHER_SIZES
            said.append(Said(frame, part, "rerecorded", reason))
        ids.add(function_id.id)

    def _why(self, manager: _Manager, inputs: list[object], function_id: _FunctionId) -> str:
        """What its last recording here does not fit; asked with a list of its own, as torch empties what fits."""
        there = manager.roots if manager.current_node is None else manager.current_node.children
        recordings = there.get(function_id) or []
        if not recordings:
            return OTHER_PLACE
        _, say = recordings[-1].check_invariants(inputs)
        return str(say())

    def _logging(self, original: Callable[[str], None]) -> Callable[[str], None]:
        def skipped(message: str) -> None:
            held = sys._getframe(1).f_locals  # a method of the manager's: only it knows of which graph
            self._skip(held.get("self"), held.get("function_id"), message)
            original(message)

        return skipped

    def _skipped(self, manager: _Manager, function_id: _FunctionId, message: str) -> None:
        self._tell(Said(*self._of(manager, function_id), "skipped", message))

    def _of(self, manager: _Manager, function_id: _FunctionId) -> tuple[str, str]:
        compile_id = manager.id_to_compile_id.get(function_id)
        return str(compile_id) if compile_id is not None else "", str(manager.id_to_mode[function_id].name).lower()
