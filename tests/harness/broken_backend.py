"""A backend that breaks in each way that the conformance kit must survive."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any


def broken(gm: Any, inputs: object) -> Callable[..., object]:
    """Dies of a linear layer, as a bug in C++ does; never ends with a custom op; else adds a thousandth."""
    ops = " ".join(str(node.target) for node in gm.graph.nodes)
    if "linear" in ops:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "shifted_square" in ops:
        time.sleep(1000)

    def call(*args: object) -> object:
        return tuple(out + 1e-3 if hasattr(out, "is_floating_point") else out for out in gm(*args))

    return call
