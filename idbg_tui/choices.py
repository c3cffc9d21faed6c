"""The backends and accelerators that can be chosen, with the error of a broken one."""

from collections.abc import Iterable
from pathlib import Path

from idbg import plugins
from idbg.accelerators import registry
from idbg.accelerators.parse import parse
from idbg.schema.errors import IdbgError
from idbg.schema.events import KnownBackend, WorkerStarted
from idbg_tui import user_files

OURS = (
    KnownBackend("aot", "AOTAutograd: rules on forward and backward, Inductor's code"),
    KnownBackend("mock", "rules on the Dynamo and ATen graphs, run eagerly: no kernels, quick"),
    KnownBackend("inductor", "plain torch.compile, only captured"),
    KnownBackend("eager", "Dynamo only: graph breaks, no ATen graphs"),
    KnownBackend("aoti", "AOTInductor, for inference: rules, and a library with weights and a C++ wrapper of its own"),
)
_MOST_FILES = 50
"""Files of the folder that are looked at: a folder of thousands is no place for an accelerator."""


def backends(worker: WorkerStarted | None, current: str) -> list[KnownBackend]:
    """Ours first, then what the worker found, and `current`. Before it is up, other packages' by their names alone:
    to import them is to import torch.
    """
    unread = tuple(KnownBackend(name, "of another package") for name in plugins.names("idbg.backends"))
    others = (worker.backends if worker else ()) or unread
    by_name = {backend.name: backend for backend in (*others, *OURS)}
    by_name.setdefault(current, KnownBackend(current, "from the command line"))
    first = [backend.name for backend in OURS]
    return [by_name.pop(name) for name in first] + list(by_name.values())


def accelerators(folder: Path, used: Iterable[str]) -> list[tuple[str, str]]:
    """(name or path, description): what was used in this session first, then the folder's files, then presets.

    A file is listed if it reads as an accelerator that has rules, and one that was used even if it no longer does.
    """
    presets = registry.names()
    described: dict[str, str] = {}
    seen: set[Path] = set()
    for name in dict.fromkeys(used):
        if name and name not in presets:
            described[name] = describe(name)
            seen.add(Path(user_files.real(name)))
    for path in _files(folder):
        if path.resolve() not in seen and (words := _words_of_file(path)) is not None:
            described[str(path)] = words
    return [*described.items(), *((name, describe(name)) for name in presets)]


def _files(folder: Path) -> list[Path]:
    """The folder's TOML files, the first of them; none of one that cannot be read, as a session may name any."""
    try:
        return sorted(folder.glob("*.toml"))[:_MOST_FILES]
    except (OSError, ValueError):
        return []


def describe(accelerator: str) -> str:
    """The description of an accelerator (a preset's name or a file's path), or why it cannot be used."""
    try:
        return parse(registry.find(accelerator)[0]).description
    except IdbgError as error:
        return error.message


def _words_of_file(path: Path) -> str | None:
    try:
        parsed = parse(registry.find(str(path))[0])
    except IdbgError:
        return None
    return (parsed.description or parsed.name) if parsed.rules else None
