"""Find where a worker crashed, and the kernel that it ran.

Python's fault handler writes the stacks to a file when a signal kills the process: the innermost line of an Inductor
wrapper is the launch. The arguments of each kernel's first launch are written to another file, whose last line is the
launch where the stacks are torn: of several threads that abort, the second ends the process while Python writes.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

import idbg
from idbg.analysis.crashes import is_whole, is_wrapper, launch_at, placed, stack_of, users_place, with_site
from idbg.schema.faults import CrashSite
from idbg.schema.programs import Failure
from idbg.schema.runs import Run

STACKS, LAUNCHES = "stacks", "launches.jsonl"  # files in the folder that host and child share
FATAL = ("SIGSEGV", "SIGFPE", "SIGABRT", "SIGBUS", "SIGILL")
_OURS = str(Path(idbg.__file__).parent)
_MOST = 1 << 24  # bytes of one file that are read
_decoder = msgspec.json.Decoder(CrashSite)


def crash_site(folder: Path, signal: str) -> CrashSite | None:
    """The place at which the signal killed the process of this folder; None if it left none."""
    if signal not in FATAL:
        return None
    dump = _text(folder / STACKS)
    if not is_whole(dump):
        running = _running(folder / LAUNCHES)
        return replace(running, cause=signal) if running else None
    if not (stack := stack_of(dump)):
        return None
    texts = {place.file: _text(Path(place.file)) for place in stack if place.function not in ("", "<module>")}
    wrappers = {file for file, text in texts.items() if is_wrapper(text)}
    file, line = users_place(stack, wrappers, _OURS)
    site = CrashSite(cause=signal, file=file, line=line)
    for place in stack:
        launch = launch_at(texts[place.file], place.line) if place.file in wrappers else None
        if launch is not None:
            site = replace(
                site, kernel=launch.kernel, handle=launch.handle, wrapper=place.file, wrapper_line=place.line
            )
            return _with_arguments(site, folder / LAUNCHES)
    return site


def _first_launches(launches: Path) -> Iterator[CrashSite]:
    """The first launches, and the ends of first calls, the last one first."""
    for line in reversed(_text(launches).splitlines()):
        with contextlib.suppress(msgspec.DecodeError):  # the last line may be torn
            yield _decoder.decode(line)


def _running(launches: Path) -> CrashSite | None:
    """The launch that ran, if a wrapper was in its first call."""
    last = next(_first_launches(launches), None)
    return last if last is not None and last.kernel else None


def _with_arguments(site: CrashSite, launches: Path) -> CrashSite:
    for first in _first_launches(launches):
        if (first.wrapper, first.wrapper_line) == (site.wrapper, site.wrapper_line):
            return replace(
                site,
                part=first.part,
                arguments=first.arguments,
                arguments_of="first launch",
                file=first.file or site.file,
                line=first.line or site.line,
            )
    return site


def in_run(failure: Failure, run: Run) -> Failure:
    """The failure with what the records of its run tell of where it was."""
    site = failure.crash
    if site is None or not site.wrapper:
        return with_site(failure, site)
    text = _text(Path(site.wrapper))
    return with_site(failure, placed(site, run, text=text, message=failure.message))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
