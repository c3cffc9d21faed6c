"""What is a target with one of its switches flipped? A name says by itself what it is.

`backend`, `mode`, `dynamic`, ... are fields of the target, `dynamo.recompile_limit` is a setting of torch's, and
anything else is an option of the backend's.
"""

from difflib import get_close_matches
from typing import Literal, get_args

from msgspec.structs import replace

from idbg.config import options
from idbg.schema.errors import BadInput
from idbg.schema.programs import Float64On, OptionValue, Target

Field = Literal[
    "backend", "device", "strict", "dynamic", "accelerator", "float64", "mode", "stance", "dynamic_sources", "cold"
]
"""The fields of a target that can be flipped by name."""

_YES_NO: dict[str, tuple[OptionValue, ...]] = {
    "strict": (True, False),
    "cold": (True, False),
    "dynamic": (True, False, None),
    "float64": get_args(Float64On),
}
_MODULES = ("dynamo", "functorch", "compiler", "fx")


def switched(target: Target, name: str, value: OptionValue) -> Target:
    """The target with this as the value. A source is added to those that are dynamic, a list takes their place.

    Raises BadInput where a field cannot have it; whether torch takes it is found where torch is.
    """
    if name == "dynamic_sources":
        given = value if isinstance(value, list) else [value]
        before = () if isinstance(value, list) else target.dynamic_sources
        return replace(target, dynamic_sources=tuple(dict.fromkeys((*before, *map(str, given)))))
    if name in get_args(Field):
        return _with_field(target, name, value)
    if name.partition(".")[0] in _MODULES:
        return replace(target, settings={**target.settings, name: value})
    whose = options.family(target.backend)
    held = target.options if target.options_for == whose else {}
    return replace(target, options={**held, name: value}, options_for=whose)


def unswitched(target: Target, name: str) -> Target:
    """The target without a value of its own for this: as the program, or torch, has it."""
    if name in get_args(Field):
        return replace(target, **{name: getattr(Target(), name)})
    settings = {each: value for each, value in target.settings.items() if each != name}
    others = {each: value for each, value in target.options.items() if each != name}
    return replace(target, settings=settings, options=others)


def value_in(target: Target, name: str) -> OptionValue:
    """What the target has for this; None where it has none of its own."""
    if name in get_args(Field):
        value = getattr(target, name)
        return list(value) if isinstance(value, tuple) else value
    return target.settings[name] if name in target.settings else target.options.get(name)


def _with_field(target: Target, name: str, value: OptionValue) -> Target:
    known = _YES_NO.get(name)
    if known is not None and not any(value is each or (isinstance(each, str) and value == each) for each in known):
        near = get_close_matches(str(value), [str(each) for each in known], n=1)
        hint = f"did you mean {near[0]}?" if near else f"it is one of {', '.join(map(str, known))}"
        raise BadInput(f"{name} cannot be {value!r}", hint=hint)
    if known is None and not isinstance(value, str):
        raise BadInput(f"{name} cannot be {value!r}", hint="give a name")
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
