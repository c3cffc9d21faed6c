"""Show the scripts that reproduce failures, how small they are, and the commands that run them."""

import shlex
from dataclasses import dataclass

from markupsafe import Markup

from idbg.format import file_names
from idbg.render.html.templating import fill
from idbg.reports.commands import ask
from idbg.reports.documents import SessionData
from idbg.reports.session_scripts import Script, read
from idbg.schema.programs import Verdict
from idbg.schema.runs import History
from idbg.schema.session_repros import SessionRepro
from idbg.views.repros import other_words, status_words, tried_words, verdict, what_words

TITLE = "Repros"
ANCHOR = "repros"
PRINTED = 40  # lines of what a script printed, the last


@dataclass(frozen=True)
class ReproEntry:
    """One script of the session."""

    repro: SessionRepro
    id: str
    script: Script
    passing: Script | None

    @property
    def title(self) -> str:
        """Of which run, what it shows, and how it came to be."""
        return what_words(self.repro)

    @property
    def verdict(self) -> Verdict:
        """Whose sign and colour it has."""
        return verdict(self.repro.reproduced if self.repro.ended else None)

    @property
    def status(self) -> str:
        """What is known of it, in a few words."""
        return status_words(self.repro, live=False)

    @property
    def sentence(self) -> str:
        """Its result in a sentence."""
        return tried_words(self.repro) if self.repro.ended else self.status

    @property
    def command(self) -> str:
        """What runs it."""
        return shlex.join(["python", self._path]) if self.repro.path else ""

    @property
    def replay(self) -> str:
        """What tries it elsewhere."""
        return shlex.join(["idbg", "replay", self._path]) if self.repro.path else ""

    @property
    def _path(self) -> str:
        return file_names.from_here(self.script.path or self.repro.path)

    @property
    def others(self) -> list[str]:
        """Failures that were met on the way."""
        return [other_words(other) for other in self.repro.minified.others] if self.repro.minified else []

    @property
    def printed(self) -> list[str]:
        """The last of what it printed in a fresh process."""
        return self.repro.printed.strip().splitlines()[-PRINTED:]


def section(session: SessionData) -> Markup:
    """Each script, inlined; which command makes one, where there is none."""
    history = session.history
    return fill(
        "repros.html",
        repros=[_entry(repro, at, session.folder) for at, repro in enumerate(history.repros, 1)],
        ask=_what_makes_one(history),
    )


def _entry(repro: SessionRepro, at: int, folder: str) -> ReproEntry:
    script = read(repro.path, folder) if repro.path else Script(problem="there is no script")
    found = repro.minified
    return ReproEntry(repro, f"repro:{at}", script, read(found.passing, folder) if found and found.passing else None)


def _what_makes_one(history: History) -> tuple[str, str]:
    """Why one would be wanted, and what makes it."""
    last = history.last
    if last is not None and last.verdict == "wrong":
        return "a smallest script that shows the wrong numbers", ask("minify", last, "--wrong")
    if last is not None and last.cause is not None:
        return "a smallest script that fails so", ask("minify", last)
    if last is not None and last.violations:
        return "a script that shows the severest violation alone", ask("repro", last)
    return "", ""
