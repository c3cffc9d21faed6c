"""Restrict sessions to the output folder and the folders that the user named."""

from collections.abc import Sequence
from pathlib import Path

from idbg.schema.errors import BadInput
from idbg.session.index import LAST, find


class AllowedSessions:
    """`output`: the folder of sessions. `named`: more folders, of a session or of several."""

    def __init__(self, output: Path, named: Sequence[Path] = ()) -> None:
        self.output = output.absolute()
        self._allowed = [path.resolve() for path in (self.output, *named)]

    def session(self, text: str) -> str:
        """The folder of the session that `text` names. Raises BadInput for one outside of the allowed folders,
        OutputError where there is none.
        """
        if text != LAST and not text.strip("./"):
            raise BadInput(
                f"{text!r} is not the name of a session", hint="the tool sessions lists them; last is the newest"
            )
        folder = find(text, self.output)
        real = folder.resolve()
        if not any(real.is_relative_to(allowed) and real != self.output.resolve() for allowed in self._allowed):
            raise BadInput(
                f"the session {text} lies outside of {self.output}",
                hint="start the server with more folders: idbg mcp FOLDER",
            )
        return str(folder.absolute())
