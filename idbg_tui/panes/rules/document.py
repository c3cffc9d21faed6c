"""The text of the rules: its file or preset, what is in force, and why it is refused.

No widget and no Textual: the views edit this document, and show it.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators import edit, registry
from idbg.accelerators.lint import RuleWarning, warnings
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.schema.errors import AcceleratorError, BadInput, IdbgError, OutputError
from idbg.schema.programs import NO_ACCELERATOR, Target
from idbg.whole_file import write_whole
from idbg_tui.state.state import Rules


@dataclass(frozen=True)
class RulesHome:
    """Where rules come from (a preset's name or a path), the text as it is there, and the file if it is the user's."""

    origin: str = ""
    saved: str = ""
    path: Path | None = None

    @property
    def name(self) -> str:
        """ "mock.toml"."""
        if self.origin in ("", NO_ACCELERATOR):
            return "no accelerator"
        name = Path(self.origin).name
        return name if name.endswith(".toml") else f"{name}.toml"

    @property
    def label(self) -> str:
        """What the user calls it: a preset by its name, a file by its file name."""
        return self.name if self.path else self.name.removesuffix(".toml")

    @property
    def new_path(self) -> Path:
        """Where an accelerator that is made of this one goes: the working folder."""
        return Path(f"{Path(self.origin or 'rules').stem.removesuffix('-edited')}-edited.toml")

    def is_file(self, origin: str) -> bool:
        """Whether this is the user's own file at that path."""
        return self.path is not None and self.path.absolute() == Path(origin).absolute()


def home_of(origin: str, text: str) -> RulesHome:
    """The home of a text that was just read from there, or written there."""
    path = Path(origin)
    mine = path.suffix == ".toml" and path.is_file() and registry.PRESETS not in path.absolute().parents
    return RulesHome(origin, text, path if mine else None)


def home_of_target(target: Target) -> RulesHome:
    """The home of a text that was edited before we looked: the target's accelerator as it is now."""
    try:
        text, path = rules_for(replace(target, rules=""))
    except IdbgError:
        return RulesHome(target.accelerator)
    return home_of(str(path or target.accelerator), text)


def write_rules(path: Path, text: str) -> None:
    """Write a file in one step, with the permissions that it had. Raises OutputError; then nothing has changed."""
    try:
        write_whole(path, text.encode())
    except (OSError, ValueError) as error:
        hint = "give another path" if path.parent.is_dir() else "make the folder first"
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{path} cannot be written: {reason}", hint=hint) from None


class RulesDocument:
    """The one text that every view of the rules edits; the editor has what undo needs.

    What it becomes is posted (`unsent`); what others make of it (the file on disk, another accelerator, `$EDITOR`) is
    taken (`take`).
    """

    def __init__(self) -> None:
        self.text = ""  # as it stands, valid or not
        self.home = RulesHome()
        self.gone = False  # the user's file was deleted
        self.in_force = ""  # the last text of the session
        self.refused: Rules | None = None  # with the error why it is not this text
        self.warnings: tuple[RuleWarning, ...] = ()  # what is odd in it though it is valid
        self.theirs: Rules | None = None  # those of the file, not taken because of unsaved edits
        self._bases: dict[Path, RulesHome] = {}  # what each file was made of that was saved in this session
        self._homes: dict[str, RulesHome] = {}  # of texts that a pick of another accelerator left: undo goes home too
        self._sent: list[str] = []  # texts that were posted and have not come back yet
        self.confirmed: Path | None = None  # a file that the user knows to be written over
        self._empty_warned = False  # the user knows that a save would empty the file

    # ---------------------------------------------------------------- what is known

    @property
    def edited(self) -> bool:
        """Whether the text differs from that of its file or preset."""
        return self.text != self.home.saved

    @property
    def base(self) -> RulesHome:
        """What the edits are compared with: the preset or the file that this one was made of, if it is known."""
        return self._bases.get(self.home.path.absolute(), self.home) if self.home.path else self.home

    def base_text(self) -> str:
        """The text of the base as it is now. Raises AcceleratorError where it cannot be read."""
        return registry.find(self.base.origin)[0]

    def problems(self) -> list[str]:
        """What is wrong with the text and its file, a sentence each, in the order of their weight."""
        found = []
        if self.refused is not None:
            line = self.refused.line
            # a syntax error quotes its line with the number, which stands in front already
            message = self.refused.error.replace(f"line {line}: ", "") if line else self.refused.error
            found.append(f"{f'line {line}: ' if line else ''}{message} (the last good rules stay in force)")
        if self.theirs is not None:
            found.append(f"{self.home.name} changed on disk, and has edits here: L loads the file's text")
        if self.gone:
            found.append(f"{self.home.name} was deleted on disk: these rules stay in force, ^s writes it again")
        if self.warnings:
            first, more = self.warnings[0], len(self.warnings) - 1
            found.append(f"line {first.line}: {first.message}" + (f" (and {more} more)" if more else ""))
        return found

    # ---------------------------------------------------------------- what comes in

    def take(self, rules: Rules, target: Target, *, fresh: bool = False) -> str:
        """Take the session's text, or only why it is refused, and return what to flash.

        What comes back of what was posted is known, and a file that changed on disk waits while it has edits here.
        `fresh`: it is the first text.
        """
        message, self.in_force = "", rules.text
        left = self.edited and bool(self.home.origin) and rules.text != self.text
        if rules.origin == "editor" and rules.text in self._sent:
            del self._sent[: self._sent.index(rules.text) + 1]
        elif left and self.home.is_file(rules.origin) and rules.text != self.home.saved:
            self.theirs = rules
        else:
            if rules.origin not in ("", "editor"):
                message = f"edits of {self.home.label} are one Z away" if left else ""
                self._move(rules)
            elif fresh and rules.text:
                self.home = home_of_target(target)
            self.theirs, self.text = None, rules.text
        self.refused = rules if rules.error and rules.text == self.text else None
        self.warnings = ()
        with suppress(AcceleratorError):
            self.warnings = warnings(self.text)
        return message

    def _move(self, rules: Rules) -> None:
        """Let the text be from another place; undo brings the one before back."""
        before = self.home
        self._come_home(home_of(rules.origin, rules.text))
        if before.origin and rules.text != self.text:
            self._homes |= {self.text: before, rules.text: self.home}

    def take_theirs(self) -> bool:
        """Put the file's text in the place of the edits, which undo brings back. False if there is none to take."""
        if self.theirs is None:
            return False
        self.text = self.theirs.text
        self._come_home(home_of(self.theirs.origin, self.text))
        self.theirs = None
        return True

    def look(self) -> bool:
        """Look whether the user's file is gone, or there again; True once it changed."""
        gone = self.home.path is not None and not self.home.path.exists()
        changed, self.gone = gone != self.gone, gone
        return changed

    def _come_home(self, home: RulesHome) -> None:
        self.home, self.gone = home, False

    # ---------------------------------------------------------------- what goes out

    def changed(self) -> None:
        """The text was edited, undone or redone: one that another accelerator left is at home there again."""
        self._empty_warned = False
        if home := self._homes.get(self.text):
            self._come_home(home)

    def unsent(self) -> str | None:
        """The text to put in force, noted as sent; None where it is that already."""
        if self.text == (self._sent[-1] if self._sent else self.in_force):
            return None
        self._sent.append(self.text)
        return self.text

    # ---------------------------------------------------------------- files

    @property
    def save_path(self) -> Path:
        """The file that the rules came from; for a preset, which is not ours to change, one in the working folder."""
        return self.home.path or self.home.new_path

    def would_empty(self) -> bool:
        """Whether saving would empty the file, and no warning was given since the last edit; it is given now."""
        if self._empty_warned or not self.home.saved.strip() or self.text.strip():
            return False
        self._empty_warned = True
        return True

    def would_replace(self) -> bool:
        """Whether saving a preset's rules would write over a file that is there already."""
        return self.home.path is None and self.save_path.is_file()

    def save(self) -> Path:
        """Write the text to `save_path`. Raises OutputError; then nothing has changed."""
        return self._write(self.save_path, self.text)

    def save_as(self, typed: str) -> Path:
        """Write a new accelerator, named for its file. Raises IdbgError, with nothing written."""
        path = Path(os.path.expanduser(typed.strip()))
        if not typed.strip():
            raise BadInput("a path is needed", hint=f"for example {self.home.new_path}")
        if path.is_dir() or typed.strip().endswith("/"):
            raise BadInput(f"{path} is a folder", hint=f"give a file, for example {path / self.home.new_path}")
        path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
        parse(self.text)
        mine = self.home.is_file(str(path)) and bool(self.text.strip())
        if path.exists() and path != self.confirmed and not mine:
            self.confirmed = path
            raise BadInput(f"{path} is there already", hint="enter again writes over it")
        self.confirmed = None
        return self._write(path, edit.rename(self.text, path.stem))

    def _write(self, path: Path, text: str) -> Path:
        write_rules(path, text)
        self.text = text
        if self.home.origin and not self.home.is_file(str(path)):
            self._bases[path.absolute()] = self.base
        self._come_home(home_of(str(path), self.text))
        if self.text in self._homes:
            self._homes[self.text] = self.home
        self.theirs = None
        return path
