"""A function that Dynamo traces otherwise than eager runs it: what a fault of Dynamo's does."""

import torch


def is_traced() -> bool:
    """False; Dynamo traces True. The program does not ask torch whether it is compiled."""
    return False


@torch._dynamo.substitute_in_graph(is_traced)
def _as_dynamo_traces_it() -> bool:
    return True
