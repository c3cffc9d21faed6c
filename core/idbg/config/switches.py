"""How does a switch stand in a target, what can be typed for it, and what is the target once it is flipped?"""

from collections.abc import Iterable
from difflib import get_close_matches

import msgspec

from idbg.config import options
from idbg.config import switched as switched_by_name
from idbg.schema.decisions.switches import Switch
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target

UNLISTED = "given to this session"
"""The group of options and settings in force that torch's list of switches has not."""
_KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
    "None": (type(None),),
}


def value_of(switch: Switch, target: Target) -> OptionValue:
    """The value in force: the target's, else torch's default."""
    if switch.place == "target":
        value = getattr(target, switch.name)
        return list(value) if isinstance(value, tuple) else value
    held = _options(target) if switch.place == "option" else target.settings
    return held.get(switch.name, switch.default)


def is_changed(switch: Switch, target: Target) -> bool:
    """Whether the target says otherwise than torch does by itself."""
    return value_of(switch, target) != switch.default or switch.group == UNLISTED


def switched(target: Target, switch: Switch, value: OptionValue) -> Target:
    """The target with this value; a default is left to torch. Raises BadInput where the backend has other options."""
    if value == switch.default:
        return switched_by_name.unswitched(target, switch.name)
    if switch.place == "option" and options.family(target.backend) != options.INDUCTOR:
        raise BadInput(f"the backend {target.backend} takes none of Inductor's options", hint="b chooses another")
    return switched_by_name.switched(target, switch.name, value)


def as_torch_has_them(target: Target, switches: Iterable[Switch]) -> Target:
    """The target with every one of these at its default."""
    for switch in switches:
        if is_changed(switch, target):
            target = switched(target, switch, switch.default)
    return target


def unlisted(target: Target, switches: Iterable[Switch]) -> list[Switch]:
    """What the target says that is not among these."""
    known = {switch.name for switch in switches}
    found = [Switch(name=name, group=UNLISTED) for name in _options(target) if name not in known]
    of_settings = (name for name in target.settings if name not in known)
    return [*found, *(Switch(name=name, place="setting", group=UNLISTED) for name in of_settings)]


def typed(switch: Switch, text: str) -> OptionValue:
    """What a user typed for it. Raises BadInput where the switch cannot be that."""
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
        near = get_close_matches(text, map(str, switch.choices), n=1)
        can = f"did you mean {near[0]}?" if near else f"it can be {spelled_all(switch.choices)}"
        raise BadInput(f"{switch.name} cannot be {text or 'nothing'}", hint=can)
    known = [_KINDS[kind] for kind in kinds if kind in _KINDS]
    is_other = isinstance(value, bool) and "bool" not in kinds
    if len(known) == len(kinds) and (is_other or not any(isinstance(value, kind) for kind in known)):
        raise BadInput(f"{switch.name} is {switch.type}, not {text or 'nothing'}", hint="esc leaves it as it is")
    return value


def spelled(value: OptionValue) -> str:
    """A value as it is typed, and as Python writes it."""
    if isinstance(value, (list, dict)):
        return msgspec.json.encode(value).decode()
    return str(value)


def spelled_all(values: Iterable[OptionValue]) -> str:
    """ "True, False"; what is left to the program is said so."""
    return ", ".join(spelled(value) or "the program's" for value in values)


def _options(target: Target) -> dict[str, OptionValue]:
    """Inductor's; a backend of others has its own."""
    return target.options if target.options_for == options.INDUCTOR else {}
