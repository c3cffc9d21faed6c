"""Which session does the user mean: a path, the name of one in the output folder, or `last`?"""

import difflib
from pathlib import Path

from idbg.config import places
from idbg.schema.errors import OutputError
from idbg.session.files import LOG, is_session
from idbg.session.index import sessions

LAST = "last"


def find(text: str, output: Path) -> Path:
    """The folder of the session that `text` names: a path to it or to its log, its name in the folder `output`, or
    "last" for the newest there. Raises OutputError where there is none, with what there is.
    """
    found = named(text, output)
    if found is not None:
        return found
    given = places.expanded(text)
    if text == LAST:
        raise OutputError(f"there is no session in {output}", hint="idbg run FILE.py makes one; --output names others")
    if not text:
        raise OutputError("no session is named", hint=_there(text, output))
    if given.is_dir():
        raise OutputError(f"{given} is not a session: it has no {LOG}", hint=_there(text, output))
    raise OutputError(f"there is no session {text}", hint=_there(text, output))


def named(text: str, output: Path) -> Path | None:
    """The same; None where that is the name of no session: it may be a program's."""
    if text == LAST:
        newest = next(iter(sessions(output)), None)
        return Path(newest.folder) if newest else None
    if not text:
        return None
    given = places.expanded(text)
    if is_session(given):
        return given
    if given.name == LOG and is_session(given.parent):
        return given.parent
    if Path(text).name == text and is_session(output / text):
        return output / text
    return None


def _there(text: str, output: Path) -> str:
    names = [each.name for each in sessions(output)]
    near = difflib.get_close_matches(Path(text).name, names, 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"idbg list names those in {output}" if names else f"there is none in {output} either"
