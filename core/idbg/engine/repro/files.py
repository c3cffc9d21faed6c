"""Where does a repro go on the disk?"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import torch

from idbg.schema.errors import OutputError


def new_folder(parent: Path, name: str) -> Path:
    """A folder of this name below `parent`, numbered where there is one already. Raises OutputError."""
    safe = re.sub(r"[^\w.-]", "_", name)[:80]
    try:
        for number in range(1, 10_000):
            folder = parent / (safe if number == 1 else f"{safe}-{number}")
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise OutputError(
            f"the repro folder {parent} cannot be written: {error.strerror}", hint="choose another with --output"
        ) from error
    raise OutputError(f"{parent} holds 10,000 repros of {name} already", hint="delete some")


def write(folder: Path, script: str, tensors: Mapping[str, torch.Tensor]) -> Path:
    """Write the repro's files, and return the script's path. Raises OutputError."""
    try:
        if tensors:
            save(tensors, folder / "tensors.safetensors")
        path = folder / "repro.py"
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"the repro in {folder} cannot be written: {error.strerror}",
            hint="free some space, or choose another folder with --output",
        ) from error
    return path


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


def save(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write the tensors; `values.kept_as` tells which dtypes a file can have. Raises OSError."""
    header: dict[str, object] = {}
    at = 0
    for name, tensor in tensors.items():
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    told = json.dumps(header).encode()
    told += b" " * (-len(told) % 8)
    with path.open("wb") as file:
        file.write(len(told).to_bytes(8, "little") + told)
        for tensor in tensors.values():
            if tensor.numel():
                flat = tensor.detach().cpu().contiguous().reshape(-1)
                file.write(memoryview(flat.view(torch.uint8).numpy()))  # type: ignore[arg-type]
