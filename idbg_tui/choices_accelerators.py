"""Which accelerators can be chosen? Presets, the files of the working folder, and those that were in force before."""

from collections.abc import Iterable
from pathlib import Path

from idbg.accelerators import model
from idbg.schema.errors import AcceleratorError
from idbg_tui.state import user_files

_MOST = 50
"""Files of the folder that are looked at: a folder of thousands is no place for an accelerator."""


def choices(folder: Path, used: Iterable[str]) -> list[tuple[str, str]]:
    """(name or path, description): what was used in this session first, then the folder's files, then presets.

    A file is listed if it reads as an accelerator that has rules, and one that was used even if it no longer does.
    """
    presets = model.names()
    found: dict[str, str] = {}
    seen: set[Path] = set()
    for name in dict.fromkeys(used):
        if name and name not in presets:
            found[name] = described(name)
            seen.add(Path(user_files.real(name)))
    for path in sorted(folder.glob("*.toml"))[:_MOST]:
        if path.resolve() not in seen and (words := _words_of_file(path)) is not None:
            found[str(path)] = words
    return [*found.items(), *((name, described(name)) for name in presets)]


def described(name: str) -> str:
    """What an accelerator says of itself, or why it cannot be used."""
    try:
        return model.parse(model.find(name)[0]).description
    except AcceleratorError as error:
        return error.message


def _words_of_file(path: Path) -> str | None:
    try:
        parsed = model.parse(model.find(str(path))[0])
    except AcceleratorError:
        return None
    return (parsed.description or parsed.name) if parsed.rules else None
