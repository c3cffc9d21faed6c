"""Find the launch that makes a device fail, by waiting for each launch.

A device runs asynchronously, and reports an error at a later call.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

from idbg.engine.compat import gpu, kernels
from idbg.engine.compat.torch_types import TorchDispatchMode
from idbg.engine.instrument.wrapper_code import Instrumented, instrumented

_WAIT = "__idbg_wait__"


@contextmanager
def launches_waited_for() -> Iterator[None]:
    """While it lasts, the device is waited for after each launch of each wrapper that is loaded."""
    changed: list[Instrumented] = []

    def loaded(module: ModuleType) -> None:
        if (found := instrumented(module, _WAIT, "after")) is not None:
            changed.append(found[0])
            changed[-1].start({_WAIT: wait_for_launch})

    try:
        with gpu.each_waited_for(), kernels.observe_loads(loaded), _OpsWaited():  # type: ignore[no-untyped-call]
            yield
    finally:
        for each in changed:
            each.stop()


@contextmanager
def ops_waited_for() -> Iterator[None]:
    """While it lasts, the device is waited for after each single op, as in eager."""
    with gpu.each_waited_for(), _OpsWaited():  # type: ignore[no-untyped-call]
        yield


def wait_for_launch(_: int, result: object) -> object:
    """Wait until the device has done the launch that was just made; raises what the device does."""
    gpu.wait()
    return result


def wait_for_op() -> None:
    """The same after a single op."""
    gpu.wait()


class _OpsWaited(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Waits for the device after each op in eager."""

    supports_higher_order_operators = True  # as which compiled code is called where a mode is in force

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Otherwise Dynamo skips every frame."""
        return True

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        wait_for_op()
        return result
