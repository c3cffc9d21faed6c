"""Where does a repro go on the disk?"""

import re
from collections.abc import Mapping
from pathlib import Path

import torch

from idbg.engine.repro.tensors_file import save
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
