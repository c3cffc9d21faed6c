"""Which sessions may be read: those of the output folder, and those that the user named."""

from collections.abc import Sequence
from pathlib import Path

from idbg.schema.errors import BadInput
from idbg.session.index import LAST, find


class Where:
    """`output` is where sessions are kept; `named` are folders, of a session or of several, that the user gave."""

    def __init__(self, output: Path, named: Sequence[Path] = ()) -> None:
        self.output = output.absolute()
        self._allowed = [path.resolve() for path in (self.output, *named)]

    def session(self, text: str) -> str:
        """The folder of the session that `text` names. Raises BadInput for one that lies elsewhere, OutputError where
        there is none.
        """
        if text != LAST and not text.strip("./"):
            raise BadInput(
                f"{text!r} is the name of no session", hint="the tool sessions lists them; last is the newest"
            )
        folder = find(text, self.output)
        real = folder.resolve()
        if not any(real.is_relative_to(allowed) and real != self.output.resolve() for allowed in self._allowed):
            raise BadInput(
                f"the session {text} lies outside of {self.output}",
                hint="whoever starts the server may name further folders: idbg mcp FOLDER",
            )
        return str(folder.absolute())
