"""Build the command that opens the user's editor at a line, and waits for it."""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import PurePath

from idbg.schema.errors import BadInput

_PLUS_LINE = {"vi", "vim", "nvim", "view", "gvim", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe", "mg"}
_GOTO = {"code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"}
_COLON_LINE = {"hx", "helix", "subl", "zed", "zeditor"}
# editors that return at once without this option
_WAIT = {**dict.fromkeys([*_GOTO, "subl", "zed", "zeditor"], "--wait"), "gvim": "--nofork"}
_FALLBACKS = ("nano", "vim", "vi")


def command(path: str, line: int, environ: Mapping[str, str]) -> list[str]:
    """The argument list that opens `path` at `line` (1-based) in $VISUAL, $EDITOR or what is installed.

    Raises BadInput if there is no editor.
    """
    editor = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or _installed(environ))
    if not editor:
        raise BadInput("no editor is set and none was found", hint="set $EDITOR, for example: export EDITOR=nano")
    name = PurePath(editor[0]).name.removesuffix(".exe")
    if (wait := _WAIT.get(name)) and wait not in editor:
        editor.append(wait)
    if name in _GOTO:
        return [*editor, "--goto", f"{path}:{line}"]
    if name in _COLON_LINE:
        return [*editor, f"{path}:{line}"]
    if name in _PLUS_LINE:
        return [*editor, f"+{line}", path]
    return [*editor, path]


def _installed(environ: Mapping[str, str]) -> str:
    return next((name for name in _FALLBACKS if shutil.which(name, path=environ.get("PATH"))), "")
