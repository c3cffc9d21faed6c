"""Read the text of another compiler's stage, from its record or from the file of the session that has it."""

from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from idbg.format.amounts import size
from idbg.schema.code import CompilerStage
from idbg.session import files

SHOWN = 1 << 20
"""Bytes of a text that are read: a screen, a report and an answer show no more."""


class StageShown(NamedTuple):
    """The text of a stage as far as it is shown, and a sentence where that is not all."""

    text: str
    note: str = ""


def text_of(stage: CompilerStage, folder: str | Path, most: int = SHOWN) -> StageShown:
    """The text of a stage of the session in this folder, up to `most` bytes."""
    if stage.binary:
        return StageShown("", f"a binary of {size(stage.size)}: it is not shown")
    if stage.text or not stage.size:
        return StageShown(stage.text)
    if not stage.file:
        return StageShown("", f"a text of {size(stage.size)} that was not kept")
    path = PurePosixPath(stage.file)
    if path.is_absolute() or ".." in path.parts:  # a session may come from anybody
        return StageShown("", f"its file {stage.file} is not in the session's folder")
    return _read(str(folder), stage.file, most)


@lru_cache(maxsize=8)
def _read(folder: str, file: str, most: int) -> StageShown:
    path = Path(folder, file)
    try:
        with open(files.opened(path), "rb") as opened:
            data = opened.read(most + 1)
            whole = opened.seek(0, 2)
    except OSError as error:
        return StageShown("", f"its text cannot be read: {error.strerror or error}")
    if len(data) <= most:
        return StageShown(data.decode("utf-8", "replace"))
    text = data[:most].decode("utf-8", "ignore").rpartition("\n")[0]
    return StageShown(text, f"the first {size(most)} of {size(whole)}: {path} has all")
