"""How does a script that fails become a report for PyTorch's issue form, and one file to send?"""

import zipfile
from pathlib import Path

from idbg import __version__
from idbg.reports.repros import result_words, signature_words
from idbg.schema.errors import OutputError
from idbg.schema.events import WorkerStarted
from idbg.schema.repros import Minified
from idbg.schema.runs import Run

REPORT = "report.md"
LINES = 60  # of what the script printed
_SIDE = ("passing", "other-")  # folders of what does not fail so


def markdown(found: Minified, script: str, run: Run, worker: WorkerStarted | None) -> str:
    """The report: what fails, the script, what it printed, versions, under the headings of torch.compile's form."""
    printed = found.printed.strip().splitlines()
    kept = printed if len(printed) <= LINES else ["...", *printed[-LINES:]]
    stored = "tensors.safetensors" in script
    with_data = " It reads the values in `tensors.safetensors`, which is attached." if stored else ""
    versions = [f"torch {worker.torch}, Python {worker.python}, on {', '.join(worker.devices)}"] if worker else []
    return "\n".join(
        [
            "### 🐛 Describe the bug",
            "",
            f"With the backend `{run.target.backend}`: {signature_words(found.signature)}.",
            f"The script below exits with 1 where it fails so, and with 0 where it does not.{with_data}",
            f"({result_words(found)}.)",
            "",
            *_fenced(script.rstrip().splitlines(), "python"),
            "",
            "### Error logs",
            "",
            *_fenced(kept, "text"),
            "",
            "### Versions",
            "",
            *versions,
            f"Found and made smaller by idbg {__version__}; `python -m torch.utils.collect_env` prints the rest.",
            "",
        ]
    )


def write(found: Minified, run: Run, worker: WorkerStarted | None) -> Path:
    """Write the report beside the script, and give its path. Raises OutputError."""
    path = Path(found.path).with_name(REPORT)
    try:
        text = Path(found.path).read_text(encoding="utf-8")
        path.write_text(markdown(found, text, run, worker), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}", hint="free some space") from error
    return path


def pack(script: Path) -> Path:
    """Pack the script with what lies beside it into one file, named as its folder is, and give its path.

    Raises OutputError.
    """
    folder = script.absolute().parent
    path = folder.with_suffix(".zip") if not folder.suffix else folder.with_name(f"{folder.name}.zip")
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(folder.rglob("*")):
                inside = file.relative_to(folder)
                if file.is_file() and not inside.parts[0].startswith(_SIDE) and "__pycache__" not in inside.parts:
                    packed.write(file, Path(folder.name, inside))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OutputError(f"{path} cannot be written: {error.strerror}", hint="free some space") from error
    return path


def _fenced(lines: list[str], language: str) -> list[str]:
    """The lines as code, in a fence that none of them ends."""
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return [f"{fence}{language}", *lines, fence]
