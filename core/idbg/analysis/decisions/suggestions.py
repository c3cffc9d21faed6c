"""A suggestion: what to do about a decision, in words and in code, and the target that tries it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.schema.decisions.dynamo import Trial
from idbg.schema.programs import OptionValue, Target


@dataclass(frozen=True)
class Suggestion:
    """Something that may help: a trial shows whether it does. `code` is what the user writes, "" where no line says
    it; what follows is what a target must have for the program to run as if it were done: none of it where only the
    program can be changed.
    """

    words: str
    code: str = ""
    dynamic: bool | None = None
    dynamic_sources: tuple[str, ...] = ()
    settings: dict[str, OptionValue] = field(default_factory=dict)

    @property
    def can_be_tried(self) -> bool:
        """Whether a target alone does it."""
        return self.dynamic is not None or bool(self.dynamic_sources or self.settings)

    def tried(self, target: Target) -> Target:
        """The target with which it is done."""
        return replace(
            target,
            dynamic=target.dynamic if self.dynamic is None else self.dynamic,
            dynamic_sources=tuple(dict.fromkeys((*target.dynamic_sources, *self.dynamic_sources))),
            settings={**target.settings, **self.settings},
        )

    def result(self, trials: Sequence[Trial]) -> Trial | None:
        """The last of these that tried it; None where none did."""
        if not trials or not self.can_be_tried:
            return None
        mine = self.dynamic, self.dynamic_sources, self.settings
        alike = (each for each in trials if (each.dynamic, each.dynamic_sources, each.settings) == mine)
        return max(alike, key=lambda each: each.after, default=None)
