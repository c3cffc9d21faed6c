"""Which op is differentiated now, and where in the program was it run? Of torch's private names. Run on torch 2.14."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch


@contextmanager
def stacks_kept() -> Iterator[None]:
    """Autograd notes for each op of the forward where in the program it was run; it checks and says nothing."""
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        yield


def differentiated() -> tuple[str, list[str]] | None:
    """The autograd node that runs on this thread ("SqrtBackward0") and the stack of its forward, outermost frame first,
    as `traceback` writes it; None outside of a backward pass. The stack is empty where none was kept.
    """
    node = torch._C._current_autograd_node()
    if node is None:
        return None
    metadata = cast("dict[str, list[str]]", node.metadata)
    return str(node.name()), metadata.get("traceback_", [])
