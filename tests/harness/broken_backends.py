"""Backends that break in each way that the conformance kit must survive; a plug-in of a test installs them."""

import os
import signal
import time


def crashes(gm, inputs):
    """Dies where the graph has a matrix product, as a bug in C++ does."""
    if any("linear" in str(node.target) or "matmul" in str(node.target) for node in gm.graph.nodes):
        os.kill(os.getpid(), signal.SIGSEGV)
    return gm.forward


def hangs(gm, inputs):
    """Never ends."""
    time.sleep(1000)


def wrong(gm, inputs):
    """Adds a thousandth to every floating output."""

    def call(*args):
        return tuple(out + 1e-3 if out is not None and out.is_floating_point() else out for out in gm(*args))

    return call
