"""Write a repro's folder: its script, and its tensors in a safetensors file.

`safetensors.torch.save_file` copies all tensors into memory first, and refuses tensors that share memory. `save` writes
each from where it lies; only tensors on a device, or that are not contiguous, are copied, one at a time.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import torch

from idbg.schema.errors import OutputError, output_errors

SCRIPT, TENSORS = "repro.py", "tensors.safetensors"
_NAMES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.uint16: "U16",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int32: "I32",
    torch.uint32: "U32",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.int64: "I64",
    torch.uint64: "U64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}


def new_folder(parent: Path, name: str) -> Path:
    """Create a folder of this name below `parent`, numbered if there is one already. Raises OutputError."""
    safe = re.sub(r"[^\w.-]", "_", name)[:80]
    with output_errors(f"the repro folder {parent} cannot be written", "choose another with --output"):
        for number in range(1, 10_000):
            folder = parent / (safe if number == 1 else f"{safe}-{number}")
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                return folder
    raise OutputError(f"{parent} holds 10,000 repros of {name} already", hint="delete some")


def write(
    folder: Path,
    script: str,
    tensors: Mapping[str, torch.Tensor],
    link: Callable[[Path], bool] = lambda place: False,
) -> Path:
    """Write the script and its tensors into the folder, and return the script's path. `link` may provide the file of
    tensors instead. Raises OutputError.
    """
    path, place = folder / SCRIPT, folder / TENSORS
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        if tensors and not link(place):
            save(tensors, place)
        path.write_text(script, encoding="utf-8")
    return path


def writing(folder: Path) -> AbstractContextManager[None]:
    """Turn the errors of writing files there into OutputError."""
    hint = "free some space there, or choose another place with --output or TMPDIR"
    return output_errors(f"no script can be written to {folder}", hint)


def save(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write the tensors, whose dtypes must be those that `values.kept_as` returns. Raises OSError."""
    header: dict[str, object] = {}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for tensor in tensors.values():
            if tensor.numel():
                flat = tensor.detach().cpu().contiguous().reshape(-1)
                file.write(memoryview(flat.view(torch.uint8).numpy()))  # type: ignore[arg-type]
