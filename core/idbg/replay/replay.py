"""Run repros, each as it is and with one thing changed at a time."""

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from idbg.accelerators import registry
from idbg.config import options, places
from idbg.replay import process
from idbg.replay.edit import Changed, Repro
from idbg.schema.errors import BadInput, IdbgError, OutputError
from idbg.schema.programs import OptionValue
from idbg.schema.repros import Replayed, Variant

NAME = "repro.py"
"""The name of every repro script, each in a folder of its own."""
BESIDE = ("passing", "other-")
"""Prefixes of the folders beside a minified script: scripts that pass, or fail in another way."""


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
        return Repro(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="name a repro.py that idbg wrote") from error


def replays(
    paths: Sequence[Path],
    variants: Sequence[Variant],
    *,
    seconds: float = process.SECONDS,
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
    try:
        with tempfile.TemporaryDirectory(prefix="idbg-replay-", ignore_cleanup_errors=True) as folder:
            script = path if changed.text == repro.text else _copy(path, changed.text, Path(folder))
            done = process.outcome(script, Path(folder), seconds=seconds, python=python)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be replayed: {error.strerror or error}", hint="make room in TMPDIR, or name another"
        ) from error
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
