"""How are tensors written to a file of safetensors without a copy of them in memory?

`safetensors.torch.save_file` makes bytes of them all first, and refuses tensors that share memory. Here each is written
from where it lies; only what lies on a device, or is not contiguous, is copied, one at a time.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch

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
