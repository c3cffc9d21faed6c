"""Read torch's messages about CUDA graphs: the reason, the user's line, and what can be done."""

import re
from typing import NamedTuple

_DUE = re.compile(r"^(?:(?:skipping|disabling) cudagraphs? due to )+")
_STACK = re.compile(r"\.?\s*(?:Found from|input stack trace)\s*:?\s*")
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_ADDRESSES = re.compile(r"(?:data pointer changed )?from \d+ to \d+\.?")
MOST = 300  # characters of a reason

_MEANT = (
    (r"^mutated inputs \((\d+) instances?\)", r"an input is changed in place (\1 in all)"),
    (r"^mutated inputs$", "an input is changed in place"),
    (r"^input storage mutation", "an input is given other memory (set_)"),
    (r"^cpu device \((.*)\)", r"a tensor on the CPU is in it: \1"),
    (r"^cpu ops$", "it runs on the CPU"),
    (r"^multiple devices:$", "nothing of it runs on a GPU"),
    (r"^multiple devices: (.*)", r"its tensors are on several devices: \1"),
    (r"^graph with symbolic shapes", "a size is dynamic, and cudagraph_skip_dynamic_graphs is on"),
    (r"^dynamic shape ops$", "its size is dynamic, and cudagraph_skip_dynamic_graphs is on"),
    (r"^incompatible op (.*)", r"\1 cannot be recorded"),
    (r"^DeviceCopy ops$", "it copies from one device to another"),
    (r"^unbacked binding ops$", "its size is known only from values (nonzero, item)"),
    (r"^(?:Conditional|Switch) ops$|^control flow operator: (.*)", "what it runs depends on a value"),
    (r"^CUDAGraph-unsafe custom ops$", "the op says of itself that it cannot be recorded"),
    (r"static input data pointer changed", "a weight or buffer is in other memory than when it was recorded"),
    (
        r"cudagraph managed tensor data pointer changed",
        "what another CUDA graph gave it is in other memory than when it was recorded",
    ),
    (r"expected dead indices", "a result of an earlier call is still held"),
    (r"exceeding max re-recording limit", "it was recorded too often: torch gave it up"),
)
_WAYS_OUT = (
    (
        r"mutated inputs",
        "change a copy (x = x.clone()), or keep the tensor's memory (torch._dynamo.mark_static_address)",
    ),
    (r"cpu device|multiple devices: .+|DeviceCopy|^cpu ops", "make it on the GPU (device=) where the rest is"),
    (r"symbolic shapes|dynamic shape", "make the size static (torch._dynamo.mark_static), or pad to a few sizes"),
    (r"unbacked|incompatible op", "keep it out of the function that is called with CUDA graphs"),
    (r"its sizes are others", "pad to a few sizes: each is recorded once, and keeps memory"),
    (r"static input data pointer changed", "change weights in place (copy_) instead of replacing them"),
    (r"expected dead indices|cudagraph managed", "call torch.compiler.cudagraph_mark_step_begin() before each step"),
)


class Read(NamedTuple):
    """A message: the reason alone, and the innermost line of the user's that it names."""

    reason: str
    file: str
    line: int


def read(message: str) -> Read:
    """Torch's message, which may have a stack in it."""
    reason, *stack = _STACK.split(message.strip(), maxsplit=1)
    places = [(file, int(line)) for file, line in _PLACE.findall(stack[0] if stack else "")]
    own = [place for place in places if "site-packages" not in place[0]]
    file, line = (own or places or [("", 0)])[-1]
    reason = _ADDRESSES.sub("", _DUE.sub("", reason)).strip()
    return Read(" ".join(reason.split())[:MOST], file, line)


def meaning(reason: str) -> str:
    """The reason in plain words; torch's own where it is none of those that are known."""
    reason = reason.rstrip(".")
    for pattern, words in _MEANT:
        if found := re.search(pattern, reason):
            return found.expand(words) if found.re.groups else words
    return reason


def ways_out(reason: str) -> str:
    """What to do so that it can be recorded; "" where nothing is known."""
    return next((words for pattern, words in _WAYS_OUT if re.search(pattern, reason)), "")
