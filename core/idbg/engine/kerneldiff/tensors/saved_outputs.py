"""Save the outputs of a session's compiled program, and load them for a later comparison.

They are safetensors files beside the session's repros; nothing else is ever read from there.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from idbg.engine.kerneldiff.tensors.pair import dense
from idbg.engine.kerneldiff.tensors.wrapped import no_memory, parts
from idbg.format.amounts import size
from idbg.schema.errors import OutputError

MOST_BYTES = 2 << 30  # of one run's outputs; more are not kept
_PATTERN = "outputs-*.safetensors"


class SavedOutputs(dict[str, Tensor]):
    """Outputs and gradients by name, from `session`; `digests` are those of its inputs and weights."""

    def __init__(self, session: str, tensors: Mapping[str, Tensor], digests: Collection[str]) -> None:
        super().__init__(tensors)
        self.session = session
        self.digests = digests

    @property
    def __name__(self) -> str:
        return f"session {self.session}"


def digest(tensors: Iterable[Tensor]) -> str:
    """A hash of the values: two runs with equal digests have equal inputs and weights."""
    fingerprint = hashlib.blake2b(digest_size=16)
    for tensor in chain.from_iterable(parts(each).values() or (each,) for each in tensors):
        if tensor.layout == torch.strided and not tensor.is_meta and not no_memory(tensor):
            fingerprint.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            fingerprint.update(dense(tensor).cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return fingerprint.hexdigest()


def save_outputs(tensors: Mapping[str, Tensor], digests: Collection[str], folder: Path, run: int) -> str:
    """Write them for later sessions. Returns why that was not done, else ""."""
    if not tensors:
        return ""
    nbytes = sum(tensor.nbytes for tensor in tensors.values())
    if nbytes > MOST_BYTES:
        return f"the outputs ({size(nbytes)}) are not kept: later sessions cannot be compared with this one"
    path = folder / f"outputs-{run}.safetensors"
    try:
        whole = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
        save_file(whole, path, metadata={"digests": " ".join(digests)})
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as error:  # a full disk; an odd dtype
        path.unlink(missing_ok=True)
        return f"the outputs are not kept ({error}): later sessions cannot be compared with this one"
    return ""


def load_outputs(session: Path, prefix: str = "") -> SavedOutputs:
    """The outputs of the session's last comparison, of the function that `prefix` names. Raises OutputError."""
    files = sorted((session / "repros").glob(_PATTERN), key=lambda path: int(path.stem.rpartition("-")[2]))
    if not files:
        raise OutputError(
            f"the session {session} has no outputs to compare with",
            hint="give one that `idbg diff` (or d on the screen) made",
        )
    try:
        tensors = load_file(files[-1])
        with safe_open(files[-1], "pt") as file:
            digests = (file.metadata() or {}).get("digests", "").split()
    except (OSError, SafetensorError) as error:
        raise OutputError(f"cannot read {files[-1]}: {error}", hint="compare with another session") from error
    mine = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    return SavedOutputs(session.name, mine, digests)
