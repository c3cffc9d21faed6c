"""Locate the user's files as URIs that a pull request can show.

GitHub shows a result on the lines of files of the repository, named relative to its root, and takes no result without
such a line. What is known of another file, or of no line, stands at the program's first line, and says where it is.
"""

from os.path import abspath, dirname, exists, isabs, join, pardir, relpath
from urllib.parse import quote

from idbg.format.plain_text import plain
from idbg.schema.runs import Run
from idbg.views.diagnostics import Diagnostic

Object = dict[str, object]
"""An object of SARIF; https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html has its keys."""
ROOT = "%SRCROOT%"
LONGEST_PATH = 4096  # of Linux: a longer one names no file


def root_of(runs: list[Run]) -> str:
    """The folder that paths are relative to: the innermost repository that the first of the programs is in, or where it
    was started; "/" where neither is known.
    """
    for run in runs:
        start = dirname(_absolute(run, run.program.path)) if not run.program.module else run.program.cwd
        for folder in (start, run.program.cwd):
            while folder and isabs(folder):
                if exists(join(folder, ".git")):  # a folder, or a file in a worktree
                    return folder
                if folder == dirname(folder):
                    break
                folder = dirname(folder)
    return next((run.program.cwd for run in runs if isabs(run.program.cwd)), "/")


def base(root: str) -> Object:
    """What `ROOT` stands for."""
    return {"uri": _file_uri(root).rstrip("/") + "/", "description": {"text": "the root of the repository"}}


def location(found: Diagnostic, run: Run | None, root: str) -> tuple[Object, ...]:
    """Where to show it; then, where that is not where it is, where it is."""
    file = _absolute(run, found.file) if 0 < len(found.file) <= LONGEST_PATH else ""
    inside = _relative(file, root)
    if inside:
        return (_inside(inside, found.line),)
    program = _relative(_program_file(run), root)
    elsewhere = _outside(file, found.line) if file else None
    shown = _inside(program, 1) if program else elsewhere or _inside("unknown", 1)
    return (shown, elsewhere) if elsewhere is not None and shown is not elsewhere else (shown,)


def _program_file(run: Run | None) -> str:
    """The file in which the program begins; of a module the first function's that was compiled."""
    if run is None:
        return ""
    if not run.program.module:
        return _absolute(run, run.program.path) if len(run.program.path) <= LONGEST_PATH else ""
    files = (_absolute(run, frame.file) for frame in run.frames.values() if frame.file)
    return next((file for file in files if _relative(file, run.program.cwd)), "")


def _absolute(run: Run | None, file: str) -> str:
    return abspath(join(run.program.cwd if run else "", file))


def _relative(file: str, root: str) -> str:
    """The path below the root; "" of what is not there. What was installed is no part of a repository."""
    inside = relpath(file, root) if file else ""
    parts = inside.split("/")
    return "" if parts[0] in ("", ".", pardir) or {"site-packages", "dist-packages"} & set(parts) else inside


def _inside(path: str, line: int) -> Object:
    return _at({"uri": _quoted(path), "uriBaseId": ROOT}, line)


def _outside(file: str, line: int) -> Object:
    return {"id": 1, **_at({"uri": _file_uri(file)}, line), "message": {"text": "where it is"}}


def _at(file: Object, line: int) -> Object:
    return {"physicalLocation": {"artifactLocation": file, "region": {"startLine": max(line, 1)}}}


def _file_uri(path: str) -> str:
    return f"file://{_quoted(path)}"


def _quoted(path: str) -> str:
    """Percent-encoded as a path of a URI; what no file name can hold is spelled."""
    try:
        return quote(path.encode("utf-8", "surrogateescape"), safe="/")
    except UnicodeEncodeError:
        return quote(plain(path), safe="/")
