"""Run repros, each as it is and with one thing changed at a time, in processes that end with all that they started."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from idbg.accelerators import registry
from idbg.config import options, places
from idbg.config.environment import SCRATCH, importable
from idbg.replay.edit import SIGNS, Changed, Repro
from idbg.schema.errors import BadInput, IdbgError, output_errors
from idbg.schema.faults import signal_name
from idbg.schema.programs import OptionValue
from idbg.schema.repros import Answer, Replayed, Variant
from idbg.whole_file import read_whole
from idbg.worker.guard import dismiss, guard, temporary_folder

NAME = "repro.py"
"""The name of every repro script, each in a folder of its own."""
BESIDE = ("passing", "other-")
"""Prefixes of the folders beside a minified script: scripts that pass, or fail in another way."""
ALONE = "idbg.engine.program.main_file"
"""Runs a script as `python FILE` would, while its compilers write so that what is killed half-way lands nowhere."""
SECONDS = 300.0
KEPT = 20_000  # characters of what a script printed
_NO_BACKEND = ("InvalidBackend", "BackendNotFound")  # what torch raises of a name that it does not know


class ReplayOutcome(NamedTuple):
    """How a script ended: `status` is None if it was stopped; `line` is the output line that shows it."""

    answer: Answer
    status: int | None
    line: str
    seconds: float


def outcome(script: Path, scratch: Path, *, seconds: float = SECONDS, python: str = "") -> ReplayOutcome:
    """Run the script and read its answer; `python`: by another interpreter. `scratch` is a folder that is ours: what
    its compilers have not finished goes there. Raises OSError where the interpreter cannot be started.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=scratch) as printed:
        process = subprocess.Popen(
            [python, str(script)] if python else [sys.executable, "-P", "-m", ALONE, "[]", str(script)],
            env=_environment(scratch, python),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        guarding = guard(-process.pid)
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
            dismiss(guarding)
        printed.seek(max(printed.tell() - KEPT, 0) if printed.seek(0, os.SEEK_END) else 0)
        text = printed.read().decode(errors="replace")
    answer, line = read_answer(status, text)
    line = line if status is not None else f"it took longer than {seconds:g} s, and was stopped"
    return ReplayOutcome(answer, status, line, time.monotonic() - began)


def read_answer(status: int | None, printed: str) -> tuple[Answer, str]:
    """The answer from an exit status and the output, and the line that shows it."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    shown = next((line for line in lines if line.startswith(SIGNS)), "")
    other = next((line.removeprefix("OTHER ") for line in lines if line.startswith("OTHER ")), "")
    if status == 1 and shown:
        return "same", shown
    if status == 0:
        return "gone", last if last.startswith("right") else ""
    if status == 2 and not other.startswith(_NO_BACKEND):
        return "different", other or last
    if status is not None and status < 0:
        return "different", f"killed by {signal_name(-status)}"
    return "not run", other or last


def _environment(scratch: Path, python: str) -> Mapping[str, str]:
    """Another interpreter's compilers, which idbg does not control, get a private cache."""
    if python:
        return {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor")}
    return {**importable(), SCRATCH: str(scratch / "builds")}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End its whole group, also if it has ended itself and left other processes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def scripts(paths: Sequence[str]) -> list[Path]:
    """The scripts that are named, those below a folder too, each once. Raises BadInput where there are none."""
    found: dict[Path, None] = {}
    for text in paths:
        path = places.expanded(text)
        if path.is_dir():
            below = [each for each in sorted(path.rglob(NAME)) if not each.parent.name.startswith(BESIDE)]
            if not below:
                raise BadInput(f"there is no {NAME} in {text}", hint="name a repro, or a folder that has some")
            found |= dict.fromkeys(below)
        elif path.is_file():
            found[path] = None
        else:
            raise BadInput(f"there is no {text}", hint="name a repro.py, or a folder that has some")
    return list(found)


def read(path: Path) -> Repro:
    """The script. Raises BadInput where it is not one of ours, or cannot be read."""
    try:
        return Repro(read_whole(path).decode(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="name a repro.py that idbg wrote") from error


def replays(
    paths: Sequence[Path],
    variants: Sequence[Variant],
    *,
    seconds: float = SECONDS,
    begun: Callable[[Path, Variant], None] = lambda path, variant: None,
) -> Iterator[Replayed]:
    """Run each script in each variant, one process after another; `begun` is called before each."""
    for path in paths:
        repro = read(path)
        for variant in variants:
            begun(path, variant)
            try:
                yield _replayed(path, repro, variant, seconds)
            except IdbgError as error:
                yield Replayed(script=str(path), variant=variant, answer="not run", result_line=error.message)


def _replayed(path: Path, repro: Repro, variant: Variant, seconds: float) -> Replayed:
    changed = _changed(repro, variant)
    if changed.gone:
        return Replayed(script=str(path), variant=variant, answer="gone", result_line=changed.note)
    python = variant.value if variant.change == "python" else ""
    with (
        output_errors(f"{path} cannot be replayed", "make room in TMPDIR, or name another"),
        temporary_folder("idbg-replay-") as folder,
    ):
        script = path if changed.text == repro.text else _copy(path, changed.text, folder)
        done = outcome(script, folder, seconds=seconds, python=python)
    return Replayed(
        script=str(path),
        variant=variant,
        answer=done.answer,
        status=done.status,
        result_line=done.line,
        note=changed.note,
        seconds=done.seconds,
    )


def _changed(repro: Repro, variant: Variant) -> Changed:
    match variant.change:
        case "backend":
            return repro.with_backend(variant.value)
        case "options":
            return repro.with_options(parsed_options(shlex.split(variant.value)))
        case "accelerator":
            return repro.with_accelerator(registry.find(variant.value)[0], variant.value)
        case _:
            return Changed(repro.text)


def parsed_options(texts: Sequence[str]) -> dict[str, OptionValue]:
    """NAME=VALUE as for --option. Raises BadInput."""
    return dict(map(options.parse, texts))


def _copy(path: Path, text: str, folder: Path) -> Path:
    """The script with another text, beside links to all that lies beside the user's: weights of several GB too."""
    copy = folder / "copy"
    copy.mkdir()
    for beside in path.absolute().parent.iterdir():
        if beside.name != path.name:
            os.symlink(beside, copy / beside.name)
    (copy / path.name).write_text(text, encoding="utf-8")
    return copy / path.name
