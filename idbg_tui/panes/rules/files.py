"""The file or preset that rules belong to, and how they are saved."""

from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from idbg.accelerators import registry
from idbg.accelerators.registry import rules_for
from idbg.schema.errors import IdbgError, OutputError
from idbg.schema.programs import NO_ACCELERATOR, Target
from idbg.whole_file import write_whole


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
