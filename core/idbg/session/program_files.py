"""Find the files of a program without running it, and those of them that were changed."""

import ast
import hashlib
import os
import re
import site
import sysconfig
import time
from collections.abc import Iterable, Iterator
from functools import cache

from idbg.accelerators.watch import SETTLE_SECONDS, Stamp, stamp
from idbg.schema.programs import Program
from idbg.schema.runs import Run

_QUOTED = re.compile(r'File "([^"\n]+)", line \d+')
MOST_FILES = 1_000
SETTLES = 20  # looks at a file that is being written; then it is taken as it is


def files_of(program: Program, run: Run | None = None) -> list[str]:
    """The program's own file first, then what it imports that is the user's, and the files that a run of it names:
    those of functions, nodes, breaks and tracebacks. Packages that are installed are left out.
    """
    found: dict[str, None] = {}
    begin = _begin(program)
    for path in (*begin, *(_named(run) if run is not None else ())):
        file = os.path.abspath(os.path.join(program.cwd, path))
        if path and file not in found and (file in begin or _is_users(file)):
            found.update(dict.fromkeys(imported(file, (os.path.dirname(begin[0]) if begin else "", program.cwd))))
    return list(found)[:MOST_FILES]


def imported(file: str, folders: tuple[str, ...]) -> list[str]:
    """The file, and what it imports from these folders, and so on; a file that is no Python imports nothing."""
    found, waiting = [file], [file]
    while waiting and len(found) < MOST_FILES:
        for name in _imports(waiting.pop()):
            for path in _candidates(name, folders):
                if path not in found and os.path.isfile(path) and _is_users(path):
                    found.append(path)
                    waiting.append(path)
    return found


class ChangedFiles:
    """Which of some files were changed since they were last looked at? Those of another size, time or inode, as an
    editor may write another file and give it the name, that hold something else: a program may write the same again.
    """

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp | None] = {}
        self._held: dict[str, bytes] = {}

    @property
    def files(self) -> list[str]:
        """Those that are looked at."""
        return list(self._stamps)

    def follow(self, files: Iterable[str], since: float | None = None) -> None:
        """Look at these from now on, and at no others. One that is new and was changed after `since` (seconds since the
        epoch) counts as changed.
        """
        followed: dict[str, Stamp | None] = {}
        for file in files:
            now = stamp(file)
            late = now is not None and since is not None and now[0] > since * 1e9
            followed[file] = self._stamps.get(file, None if late else now)
            if file not in self._held and not late:
                self._held[file] = _digest(file)
        self._stamps = followed

    def look(self) -> list[str]:
        """Those that were changed since the last look. A missing file is reported once it exists again."""
        changed = []
        for file, before in self._stamps.items():
            now = stamp(file)
            if now is None or now == before:
                continue
            self._stamps[file] = _settled(file, now)
            held = _digest(file)
            if held != self._held.get(file):
                self._held[file] = held
                changed.append(file)
        return changed

    def missing(self) -> list[str]:
        """Those that are not there now."""
        return [file for file in self._stamps if stamp(file) is None]


def _settled(file: str, now: Stamp) -> Stamp:
    """Its stamp once nobody writes to it any more: an editor empties a file before it fills it."""
    for _ in range(SETTLES):
        time.sleep(SETTLE_SECONDS)
        latest = stamp(file)
        if latest == now:
            break
        now = latest or now
    return now


def _digest(file: str) -> bytes:
    """Of what the file holds; b"" of one that cannot be read."""
    try:
        with open(file, "rb") as held:
            return hashlib.file_digest(held, "sha256").digest()
    except OSError:
        return b""


def _begin(program: Program) -> list[str]:
    """The file that the program begins in; of a module where it stands below its folder."""
    if not program.module:
        return [os.path.abspath(os.path.join(program.cwd, program.path))]
    places = (program.cwd, *(os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    for path in _candidates(program.path, tuple(place for place in places if place)):
        if os.path.isfile(path):
            main = os.path.join(os.path.dirname(path), "__main__.py")
            return [path, main] if path.endswith("__init__.py") and os.path.isfile(main) else [path]
    return []


def _named(run: Run) -> Iterator[str]:
    """Every file that the run's records name."""
    named: dict[str, None] = {}
    for graph in run.graphs.values():
        named.update(dict.fromkeys(node.file for node in graph.nodes))
    named.update(dict.fromkeys(frame.file for frame in run.frames.values()))
    named.update(dict.fromkeys(each.file for each in run.breaks))
    failures = [run.failure, *(each.failure for each in run.frame_failures)]
    for failure in failures:
        if failure is not None:
            named.update(dict.fromkeys(_QUOTED.findall(failure.traceback)))
            named[failure.file] = None
    yield from named


def _imports(file: str) -> Iterator[str]:
    """The names of the modules that the file's text imports: "a.b", ".c" of a relative one."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read(1 << 22), filename=file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it cannot be read, or is being written
    package = os.path.dirname(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            at = package
            for _ in range(node.level - 1):
                at = os.path.dirname(at)
            prefix = f"{at}{os.sep}" if node.level else ""
            whole = prefix + (node.module or "")
            yield whole
            yield from (
                f"{whole.rstrip(os.sep)}{os.sep if not node.module else '.'}{alias.name}" for alias in node.names
            )


def _candidates(name: str, folders: tuple[str, ...]) -> Iterator[str]:
    """The files that a module of this name may be in; a relative one has its folder in its name."""
    folder, _, module = name.rpartition(os.sep)
    parts = [part for part in module.split(".") if part]
    for place in (folder,) if folder else folders:
        if not place:
            continue
        path = os.path.join(place, *parts)
        yield f"{path}.py"
        yield os.path.join(path, "__init__.py")
        if not folder and len(parts) > 1:  # the packages on the way run too
            for count in range(1, len(parts)):
                yield os.path.join(place, *parts[:count], "__init__.py")


@cache
def _installed() -> tuple[str, ...]:
    """The folders in which Python and packages are installed."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [sysconfig.get_path(name) for name in names] + site.getsitepackages() + [site.getusersitepackages()]
    return tuple({os.path.join(os.path.realpath(path), "") for path in paths if path})


def _is_users(file: str) -> bool:
    """Whether it is a file that a user would edit."""
    parts = file.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts or not os.path.isfile(file):
        return False
    return not os.path.realpath(file).startswith(_installed())
