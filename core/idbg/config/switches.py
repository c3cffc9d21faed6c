"""Set values of a target by name, and read and parse torch's switches.

`backend`, `mode`, `dynamic`, ... are fields of the target, `dynamo.recompile_limit` is a setting of torch, and any
other name is an option of the backend.
"""

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from idbg.config import options
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput
from idbg.schema.programs import Float64On, OptionValue, Switch, Target

Field = Literal[
    "backend", "device", "strict", "dynamic", "accelerator", "float64", "mode", "stance", "dynamic_sources", "cold"
]
"""The fields of a target that can be set by name."""

_YES_NO: dict[str, tuple[OptionValue, ...]] = {
    "strict": (True, False),
    "cold": (True, False),
    "dynamic": (True, False, None),
    "float64": get_args(Float64On),
}
_MODULES = ("dynamo", "functorch", "compiler", "fx")
UNLISTED = "given to this session"
"""The group of options and settings that torch's list does not have."""
_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
    "None": (type(None),),
}


def with_value(target: Target, name: str, value: OptionValue) -> Target:
    """The target with this value. `dynamic_sources`: a text is added, a list replaces them.

    Raises BadInput where a field cannot have the value. Torch's own check follows in the worker.
    """
    if name == "dynamic_sources":
        sources = value if isinstance(value, list) else [value]
        before = () if isinstance(value, list) else target.dynamic_sources
        return replace(target, dynamic_sources=tuple(dict.fromkeys((*before, *map(str, sources)))))
    if name in get_args(Field):
        return _with_field(target, name, value)
    if name.partition(".")[0] in _MODULES:
        return replace(target, settings={**target.settings, name: value})
    whose = options.family(target.backend)
    others = target.options if target.options_for == whose else {}
    return replace(target, options={**others, name: value}, options_for=whose)


def without_value(target: Target, name: str) -> Target:
    """The target with the default of the program, or of torch, for this name."""
    if name in get_args(Field):
        return replace(target, **{name: getattr(Target(), name)})
    settings = {each: value for each, value in target.settings.items() if each != name}
    others = {each: value for each, value in target.options.items() if each != name}
    return replace(target, settings=settings, options=others)


def _with_field(target: Target, name: str, value: OptionValue) -> Target:
    known = _YES_NO.get(name)
    if known is not None and not any(value is each or (isinstance(each, str) and value == each) for each in known):
        hint = did_you_mean(str(value), map(str, known), f"it is one of {', '.join(map(str, known))}")
        raise BadInput(f"{name} cannot be {value!r}", hint=hint)
    if known is None and not isinstance(value, str):
        raise BadInput(f"{name} cannot be {value!r}", hint="write a name")
    if name != "backend":
        return replace(target, **{name: value})
    same = options.family(str(value)) == target.options_for
    return replace(
        target,
        backend=value,
        own_backend=False,
        options=target.options if same else {},
        options_for=options.family(str(value)),
    )


def value_of(switch: Switch, target: Target) -> OptionValue:
    """The value in force: the target's, else torch's default."""
    if switch.place == "target":
        value = getattr(target, switch.name)
        return list(value) if isinstance(value, tuple) else value
    values = _options(target) if switch.place == "option" else target.settings
    return values.get(switch.name, switch.default)


def is_changed(switch: Switch, target: Target) -> bool:
    """Whether the value differs from torch's default."""
    return value_of(switch, target) != switch.default or switch.group == UNLISTED


def set_switch(target: Target, switch: Switch, value: OptionValue) -> Target:
    """The target with this value; torch's default removes it. Raises BadInput where the backend has other options."""
    if value == switch.default:
        return without_value(target, switch.name)
    if switch.place == "option" and options.family(target.backend) != options.INDUCTOR:
        raise BadInput(f"the backend {target.backend} takes none of Inductor's options", hint="b chooses another")
    return with_value(target, switch.name, value)


def with_defaults(target: Target, switches: Iterable[Switch]) -> Target:
    """The target with all of these switches at their defaults."""
    for switch in switches:
        if is_changed(switch, target):
            target = set_switch(target, switch, switch.default)
    return target


def unlisted(target: Target, switches: Iterable[Switch]) -> list[Switch]:
    """Options and settings of the target that are not among these."""
    known = {switch.name for switch in switches}
    found = [Switch(name=name, group=UNLISTED) for name in _options(target) if name not in known]
    of_settings = (name for name in target.settings if name not in known)
    return [*found, *(Switch(name=name, place="setting", group=UNLISTED) for name in of_settings)]


def parse_value(switch: Switch, text: str) -> OptionValue:
    """The value that a user typed. Raises BadInput where the switch cannot have it."""
    text = text.strip()
    kinds = tuple(part.strip() for part in switch.type.split("|"))
    if "None" in kinds and text.lower() in ("", "none", "null"):
        return None
    _, value = options.parse(f"{switch.name}={text}")
    if isinstance(value, (int, float)) and "str" in kinds and not {"bool", "int", "float"} & {*kinds}:
        value = text
    if isinstance(value, str) and kinds == ("list",):
        value = [each.strip() for each in value.split(",") if each.strip()]
    if switch.choices and value not in switch.choices:
        can = did_you_mean(text, map(str, switch.choices), f"it can be {spelled_all(switch.choices)}")
        raise BadInput(f"{switch.name} cannot be {text or 'nothing'}", hint=can)
    known = [_KINDS[kind] for kind in kinds if kind in _KINDS]
    is_other = isinstance(value, bool) and "bool" not in kinds
    if len(known) == len(kinds) and (is_other or not any(isinstance(value, kind) for kind in known)):
        raise BadInput(f"{switch.name} is {switch.type}, not {text or 'nothing'}", hint="esc leaves it as it is")
    return value


def spelled(value: OptionValue) -> str:
    """A value as text, as a user types it."""
    if isinstance(value, (list, dict)):
        return msgspec.json.encode(value).decode()
    return str(value)


def spelled_all(values: Iterable[OptionValue]) -> str:
    """ "True, False"; "" is the program's."""
    return ", ".join(spelled(value) or "the program's" for value in values)


def _options(target: Target) -> dict[str, OptionValue]:
    """The target's options of Inductor."""
    return target.options if target.options_for == options.INDUCTOR else {}
