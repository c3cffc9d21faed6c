"""Record torch's decisions about CUDA graphs: which graphs become one, which do not, and why."""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch.fx import Node

if TYPE_CHECKING:
    from torch._inductor.cudagraph_trees import CUDAGraphNode, CUDAGraphTreeManager
    from torch._inductor.cudagraph_utils import FunctionID
    from torch._inductor.ir import GraphPartitionSignature
    from torch._inductor.output_code import CompiledFxGraph
    from torch._inductor.scheduler import BaseSchedulerNode, PartitionType, Scheduler
    from torch._inductor.utils import InputType

    _Partitions = tuple[list[PartitionType], list[GraphPartitionSignature]]

from idbg.engine.compat.hooks import Feature, caller, hooked
from idbg.engine.compat.names import internals
from idbg.engine.compat.tracing import current_frame, part_of
from idbg.schema.decisions.inductor import CudaGraphOutcome
from idbg.schema.graphs import Part

OTHER_SIZES = "its sizes are others: torch records one for each"
OTHER_PLACE = "it follows another CUDA graph than before"


class Decision(NamedTuple):
    """A decision in the compile `frame` (torch's id). `message`: torch's, with the user's stack in it; `node`: of the
    post-grad graph, where one is the reason.
    """

    frame: str
    part: Part
    outcome: CudaGraphOutcome
    message: str = ""
    node: str = ""


@contextmanager
def observe_cuda_graphs(graphs: Feature, recordings: Feature, decided: Callable[[Decision], None]) -> Iterator[None]:
    """While it lasts, `decided` gets for each compiled graph whether it can be a CUDA graph, and each recording."""

    def post_compile(
        call: Callable[..., object],
        graph: "CompiledFxGraph",
        inputs: object,
        constants: object,
        how: Mapping[str, object],
    ) -> object:
        requested = is_requested(how.get("cudagraphs"))
        result = call(graph, inputs, constants, how)
        if not requested:
            return result
        part = part_of(bool(how.get("is_backward")), bool(how.get("is_inference")))
        reasons = _skip_reasons(graph)
        for reason in reasons:
            decided(Decision(current_frame(), part, "skipped", reason))
        if not reasons:
            observe_recordings()
            decided(Decision(current_frame(), part, "ready"))
        return result

    def log_skip(call: Callable[[str], None], message: str) -> None:
        decided(Decision(current_frame(), "", "skipped", message))
        call(message)

    def graph_partition(call: "Callable[[Scheduler], _Partitions]", scheduler: "Scheduler") -> "_Partitions":
        result = call(scheduler)
        for decision in _split(scheduler, result) if is_requested() else ():
            decided(decision)
        return result

    def observe_recordings() -> None:
        """Only now there is a GPU for which torch imports the module that records."""
        if pending and torch.cuda.is_available():
            importlib.import_module("torch._inductor.cudagraph_trees")
            stack.enter_context(pending.pop())

    wrappers = {
        "CompiledFxGraph.post_compile": post_compile,
        "log_cudagraph_skip_and_bump_counter": log_skip,
        "Scheduler.graph_partition": graph_partition,
    }
    pending = [_Recordings(decided).hooked(recordings)]
    with ExitStack() as stack, hooked(graphs, wrappers):
        yield


def is_requested(cudagraphs: object = None) -> bool:
    """Whether torch's settings, or this option of a torch.compile, request CUDA graphs."""
    return bool(internals._inductor.config.triton.cudagraphs or cudagraphs)


def _skip_reasons(graph: "CompiledFxGraph") -> Sequence[str]:
    if graph.disabled_cudagraphs_reason:
        return [graph.disabled_cudagraphs_reason]
    if graph.cudagraph_info and graph.cudagraph_info.cudagraph_fail_reasons:
        return graph.cudagraph_info.cudagraph_fail_reasons
    is_empty = internals._inductor.config.graph_partition and not graph.partition_maps
    return ["no op of it can be in one"] if is_empty else ()


def _split(scheduler: "Scheduler", partitions: "_Partitions") -> Iterator[Decision]:
    part = part_of(
        internals._inductor.virtualized.V.graph.is_backward, internals._inductor.virtualized.V.graph.is_inference
    )
    for nodes, signature in zip(*partitions, strict=True):
        for node in nodes if signature.skip_cudagraph else ():
            for reason, origin in _reasons(scheduler, node):
                stack_trace = str(origin.meta.get("stack_trace") or "") if origin is not None else ""
                name = origin.name if origin is not None else ""
                yield Decision(current_frame(), part, "split", f"{reason} Found from : \n{stack_trace}", name)


def _reasons(scheduler: "Scheduler", node: "BaseSchedulerNode") -> Iterator[tuple[str, Node | None]]:
    """Why each op of this node of the scheduler's is not in a CUDA graph, and its FX node."""
    for each in node.get_nodes():
        reason = scheduler.should_partition(each)
        if reason and each.node is not None:
            yield str(reason), each.node.get_origin_node() or next(iter(each.node.get_origins()), None)


class _Recordings:
    """The recordings that torch makes as the program runs. A graph that is recorded again has a reason."""

    def __init__(self, decided: Callable[[Decision], None]) -> None:
        self._decided = decided
        self._known: dict[tuple[str, int], set[int]] = {}  # the ids of each compile and compiled function

    def hooked(self, feature: Feature) -> AbstractContextManager[None]:
        """While it lasts, recordings are reported."""
        wrappers = {
            "CUDAGraphTreeManager.record_function": self._record,
            "log_cudagraph_skip_and_bump_counter": self._log_skip,
        }
        return hooked(feature, wrappers)

    def _record(
        self,
        call: Callable[..., object],
        manager: "CUDAGraphTreeManager",
        inputs: "list[InputType]",
        function_id: "FunctionID",
    ) -> object:
        decision = self._decision(manager, list(inputs), function_id)
        result = call(manager, inputs, function_id)
        self._decided(decision)  # only now: the recording may fail
        return result

    def _decision(
        self, manager: "CUDAGraphTreeManager", inputs: "list[InputType]", function_id: "FunctionID"
    ) -> Decision:
        frame, part = self._of(manager, function_id)
        model = id(manager.ids_to_funcs[function_id].model)
        ids = self._known.setdefault((frame, model), set())
        is_first, is_known = not ids, function_id.id in ids
        ids.add(function_id.id)
        if is_first:
            return Decision(frame, part, "captured")
        return Decision(frame, part, "rerecorded", self._why(manager, inputs, function_id) if is_known else OTHER_SIZES)

    def _why(self, manager: "CUDAGraphTreeManager", inputs: "list[InputType]", function_id: "FunctionID") -> str:
        """Which invariant of its last recording here fails. torch empties the list of inputs that fit: pass a copy."""
        last = cast("CUDAGraphNode | None", manager.current_node)
        recordings = (manager.roots if last is None else last.children).get(function_id)
        if not recordings:
            return OTHER_PLACE
        _, reason = recordings[-1].check_invariants(inputs)
        return str(reason())

    def _log_skip(self, call: Callable[[str], None], message: str) -> None:
        local = caller().f_locals  # of a method of the manager's: only it knows the graph
        frame, part = self._of(local["self"], local["function_id"])
        self._decided(Decision(frame, part, "skipped", message))
        call(message)

    def _of(self, manager: "CUDAGraphTreeManager", function_id: "FunctionID") -> tuple[str, Part]:
        compile_id, mode = manager.id_to_compile_id.get(function_id), manager.id_to_mode[function_id].name
        part = part_of(mode == "BACKWARD", mode == "INFERENCE")
        return str(compile_id) if compile_id is not None else "", part
