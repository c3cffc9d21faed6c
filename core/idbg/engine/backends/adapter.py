"""Use an accelerator's adapter as a backend.

AOTAutograd traces to ATen, the rules are checked as for every backend, and the adapter compiles each graph that passes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from torch.fx import GraphModule

from idbg import plugins
from idbg.accelerators.adapter import (
    AcceleratorAdapter,
    AdapterError,
    Callee,
    Capabilities,
    CompilationResult,
    CompilationStatus,
)
from idbg.engine.backends.base import Job
from idbg.engine.capture.fx import native_call
from idbg.engine.compat import lowering
from idbg.engine.compat.lowering import Compiled
from idbg.engine.compat.partitions import calls_of
from idbg.schema import events
from idbg.schema.decisions.backends import GraphSplit
from idbg.schema.errors import BadInput, typed_text
from idbg.schema.graphs import Part
from idbg.stages import StageText

_HINT = "choose another backend, or fix the adapter"


class AdapterBackend:
    """A package's adapter as a backend, with its fallback. Raises BadInput for attributes of wrong types."""

    checks = True

    def __init__(self, adapter: AcceleratorAdapter, name: str = "") -> None:
        self.adapter = adapter
        self.name = name or adapter.name
        for key, wanted in (("name", str), ("capabilities", Capabilities)):
            value: object = getattr(adapter, key)
            if not isinstance(value, wanted):
                who = self.name or type(adapter).__name__
                raise BadInput(
                    f"the adapter {who} gives a {type(value).__name__} as its {key}",
                    hint=f"it must be of type {wanted.__name__}",
                )
        self._warned = False

    def compile(self, job: Job) -> Compiled:
        self._warn_of_unchecked(job)
        return job.through_aot(partial(self._lowered, job))

    def _lowered(self, job: Job, part: Part, gm: GraphModule, inputs: Sequence[object]) -> Compiled:
        where = f"the {part} graph of frame {job.frame.frame}"
        cause: Exception | None = None
        try:
            result = self.adapter.compile(gm, inputs)
            if not isinstance(result, CompilationResult):
                result = CompilationResult(message=f"it gave a {type(result).__name__}, not a CompilationResult")
        # Broad on purpose: an adapter is code of others; what it raises is its result, and there may be a fallback.
        except Exception as error:
            result, cause = CompilationResult(message=typed_text(error)), error
        self._show_stages(job, part, result)
        chosen = result.fallback if result.compiled is None else result.compiled
        why = result.message or "it does not say why"
        if chosen is None:
            chosen = self._fallback(gm, inputs, f"the backend {self.name} cannot compile {where} ({why})")
        if chosen is None:
            message = f"the backend {self.name} cannot compile {where}, and has no fallback: {why}"
            raise AdapterError(message, hint=_HINT) from cause
        self._tell(job, where, result, chosen)
        self._split(job, gm, result, chosen)
        return lowering.boxed(chosen)

    def _show_stages(self, job: Job, part: Part, result: CompilationResult) -> None:
        stages: object = result.stages
        for stage in stages if isinstance(stages, list | tuple) else (stages,):
            named = stage._replace(frame="", part=part) if isinstance(stage, StageText) else stage
            job.capture.stages.add(self.name, named, "adapter")

    def _fallback(self, gm: GraphModule, inputs: Sequence[object], failed: str) -> Callee | None:
        try:
            fallback = self.adapter.fallback(gm, inputs)
        except Exception as error:  # broad on purpose, as above
            raise AdapterError(f"{failed}, and its fallback fails: {typed_text(error)}", hint=_HINT) from error
        if fallback is not None and not callable(fallback):
            raise AdapterError(
                f"{failed}, and its fallback gave a {type(fallback).__name__}, which cannot be called", hint=_HINT
            )
        return fallback

    def _warn_of_unchecked(self, job: Job) -> None:
        """In a session the rules are the target's; the host finds an adapter's rules only through its package's
        accelerator.
        """
        has_accelerator = self.name in plugins.names("idbg.accelerators")
        if self._warned or not job.capture.run or has_accelerator or self.adapter.capabilities == Capabilities():
            return
        self._warned = True
        _note(
            job,
            "warning",
            f"what {self.name} says of its capabilities is not checked: its package has no accelerator {self.name} "
            "(entry point idbg.accelerators)",
        )

    def _split(self, job: Job, gm: GraphModule, result: CompilationResult, chosen: Callee) -> None:
        """Record which calls of the graph the adapter compiled, where that is known."""
        calls = {node.name: node for node in calls_of(gm.graph.nodes)}
        if chosen is not result.compiled:
            left = {name: native_call(node, "fallback", result.message) for name, node in calls.items()}
        elif result.status == CompilationStatus.SUCCESS or result.host_nodes:
            host = result.host_nodes.items()
            left = {name: native_call(calls[name], "host", why) for name, why in host if name in calls}
        else:
            return
        compiled = tuple(name for name in calls if name not in left)
        split = GraphSplit(
            number=next(job.capture.split_numbers),
            backend=self.name,
            compiled=(compiled,) if compiled else (),
            native=tuple(left.values()),
        )
        job.capture.decided(job.frame.frame, split)

    def _tell(self, job: Job, where: str, result: CompilationResult, chosen: Callee) -> None:
        message = f": {result.message}" if result.message else ""
        if chosen is not result.compiled:
            _note(job, "warning", f"{self.name} could not compile {where}; its fallback runs{message}")
        elif result.status != CompilationStatus.SUCCESS:
            _note(job, "warning", f"{self.name} compiled {where}, with status {result.status}{message}")
        elif message:
            _note(job, "info", f"{self.name} compiled {where}{message}")


def _note(job: Job, level: Literal["info", "warning"], text: str) -> None:
    job.capture.emit(events.Noted(level=level, text=text))
