"""The record of a setting of torch that can be flipped while debugging."""

from typing import Literal

import msgspec

from idbg.schema.programs import OptionValue


class Switch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One setting: `name` is a key of Target.options (of Inductor's config) or, where `place` says so, of
    Target.settings ("dynamo.…") or a field of the target ("mode"). `default` and `meaning` are torch's own words;
    `choices`: all that it can be, where these are few.
    """

    name: str
    place: Literal["option", "setting", "target"] = "option"
    group: str = ""
    type: str = ""
    default: OptionValue = None
    meaning: str = ""
    choices: tuple[OptionValue, ...] = ()
