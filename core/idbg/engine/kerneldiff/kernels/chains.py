"""Find the launch that completes a node of which another launch computes an intermediate step.

Inductor computes some nodes in several launches: it changes the layout of a convolution's argument, splits a large
reduction, or adds a bias. The buffer of a step holds no node's value. The last launch of such a chain is compared with
the node, computed from the inputs of the first launch, so its verdict is that of the chain.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from idbg.engine.instrument.wrapper_lines import Launch, Wrapper
from idbg.engine.kerneldiff.kernels.launch_result import FIGURES, BufferResult, LaunchResult
from idbg.schema.diff import KernelError
from idbg.schema.remarks import Remark
from idbg.schema.strict_json import picked


def completed_by(wrapper: Wrapper, seen: Sequence[LaunchResult]) -> dict[int, tuple[int, BufferResult]]:
    """For each launch that ran and was not judged: the judged launch that completes a node of which it computes a step,
    and the output there by which the chain is judged.
    """
    found: dict[int, tuple[int, BufferResult]] = {}
    for number in reversed(range(len(wrapper.launches))):
        if seen[number].ran and not _judged(seen[number]):
            completing = _completing(wrapper, seen, number, found)
            if completing is not None:
                found[number] = completing
    return found


def with_chain(step: KernelError, last: KernelError, output: BufferResult) -> KernelError:
    """The record of a launch that computes a step, with the errors of the chain; the verdict is its last launch's."""
    judged_with = f"{last.handle or last.name} (line {last.wrapper_line})"
    return replace(
        step,
        observed=True,
        reason=Remark("step of a bad node" if last.bad else "step of a node", output.record.node, judged_with),
        **picked(output.record, FIGURES),
        input_error=last.input_error,
    )


def _completing(
    wrapper: Wrapper, seen: Sequence[LaunchResult], number: int, known: dict[int, tuple[int, BufferResult]]
) -> tuple[int, BufferResult] | None:
    nodes = {*wrapper.launches[number].nodes}
    for reader in _readers(wrapper, number):
        if (output := _own_output(wrapper.launches[reader], seen[reader], nodes)) is not None:
            return reader, output
        if reader in known and not nodes.isdisjoint(wrapper.launches[reader].nodes):  # itself a step of a later node
            return known[reader]
    return None


def _own_output(launch: Launch, seen: LaunchResult, nodes: set[str]) -> BufferResult | None:
    """The worst judged output of a launch that computes one of these nodes."""
    judged = [output for output in seen.outputs if output.judged is not None]
    whole = [output for output in judged if output.buffer.node in nodes]
    if not whole and nodes.isdisjoint(launch.nodes):
        return None
    return max(whole or judged, key=lambda output: output.excess, default=None)


def _judged(seen: LaunchResult) -> bool:
    return any(output.judged is not None or output.error is not None for output in seen.outputs)


def _readers(wrapper: Wrapper, number: int) -> Iterator[int]:
    """The later launches that read what this one writes, until another one writes over it."""
    written = {name for point in wrapper.points if point.launch == number for name in point.names}
    for later in range(number + 1, len(wrapper.launches)):
        if not written:
            return
        launch = wrapper.launches[later]
        if not written.isdisjoint(launch.takes):
            yield later
        written -= {name for point in wrapper.points if point.launch == later for name in point.names}
