"""How does Python run on tensors that have a form and no memory?

Run on torch 2.14.
"""

import contextlib
import logging
from collections.abc import Iterator

import torch._subclasses.fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode


@contextlib.contextmanager
def without_memory() -> Iterator[None]:
    """Tensors made in it, also on a device, have shape, stride and dtype alone; ops on them give such tensors, or raise
    what they raise, which torch does not log in it.
    """
    log = logging.getLogger(torch._subclasses.fake_tensor.__name__)
    was = log.disabled
    log.disabled = True
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        log.disabled = was
