"""Check values of Inductor's options and of torch's settings against their types."""

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Literal, Union, cast, get_args, get_origin

from idbg.config.options import INDUCTOR
from idbg.engine.compat import settings
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue

_NO = object()  # the value is none of the kind


def checked(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """The options, each converted to its type. Raises BadInput for an unknown name or an invalid value."""
    return {name: _checked(name, value) for name, value in options.items()}


def _checked(name: str, value: OptionValue) -> OptionValue:
    known = settings.options()
    if name not in known:
        hint = did_you_mean(name, known, "torch._inductor.list_options() names them all")
        raise BadInput(f"Inductor has no option {name!r}", hint=hint)
    kind = settings.option_type(name)
    fitted = _fitted(value, kind)
    if fitted is _NO:
        raise BadInput(f"Inductor's option {name} cannot be {value!r}", hint=f"it is {_words(kind)}")
    return cast("OptionValue", fitted)


def checked_settings(values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """The settings other than Inductor's, each converted to its type. Raises BadInput as `checked` does."""
    known = settings.names() if values else set()
    return {name: _checked_setting(name, value, known) for name, value in values.items()}


def _checked_setting(name: str, value: OptionValue, known: set[str]) -> OptionValue:
    if name in settings.OURS:
        raise BadInput(f"the setting {name} is idbg's own while it watches a compile", hint="leave it out")
    if name not in known:
        raise BadInput(f"torch has no setting {name!r}", hint=_nearest_setting(name, known))
    kind = settings.kind_of(name)
    fitted = _fitted(value, kind)
    if fitted is _NO or (get_origin(kind) or kind) is set:
        raise BadInput(f"torch's setting {name} cannot be {value!r}", hint=f"it is {_words(kind)}")
    return cast("OptionValue", fitted)


def _nearest_setting(name: str, known: set[str]) -> str:
    word, _, own = name.partition(".")
    if word == INDUCTOR or (own or name) in settings.options():
        option = own if word == INDUCTOR and own else name
        return f"Inductor's are options: --option {option}=VALUE"
    bare = {each.partition(".")[2]: each for each in sorted(known, reverse=True)}
    begin = f"their names begin with {', '.join(settings.MODULES)} and a dot"
    return did_you_mean(name, known) or did_you_mean(own or name, bare, begin, form=bare.__getitem__)


def _fitted(value: OptionValue, kind: object) -> object:
    """The value as this type, `_NO` if it cannot be; unchanged for a type that is not known."""
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    origin = get_origin(kind)
    if origin is Literal:
        return next((each for each in get_args(kind) if _same(each, value)), _NO)
    if origin in (Union, UnionType):
        kinds = [None if each is NoneType else each for each in get_args(kind)]
        fitting = (_fitted(value, each) for each in sorted(kinds, key=lambda each: each is None))
        return next((each for each in fitting if each is not _NO), _NO)
    if kind is None:
        return None if value is None or str(value).lower() == "none" else _NO
    if (origin or kind) in (list, dict):
        return value if isinstance(value, cast("type", origin or kind)) else _NO
    return value


def _same(choice: object, value: OptionValue) -> bool:
    """Whether the value is this choice; `"2"` may be given as 2."""
    return str(choice) == str(value) and (isinstance(choice, str) or type(choice) is type(value))


def _boolean(value: OptionValue) -> object:
    return bool(value) if value in (0, 1) and isinstance(value, (bool, int)) else _NO


def _integer(value: OptionValue) -> object:
    return value if isinstance(value, int) and not isinstance(value, bool) else _NO


def _float(value: OptionValue) -> object:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _NO


def _text(value: OptionValue) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else _NO


_PLAIN: dict[object, Callable[[OptionValue], object]] = {bool: _boolean, int: _integer, float: _float, str: _text}


_WORDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a JSON list",
    set: "a set, which cannot be given as text",
    dict: "a JSON table",
}


def _words(kind: object) -> str:
    """A type in words: "true or false", "a number", "one of a, b"."""
    if kind in _PLAIN:
        return _WORDS[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (Union, UnionType):
        return " or ".join(_words(each) for each in inner)
    if kind is NoneType:
        return "none"
    return _WORDS.get(origin or kind, "what torch._inductor.config says")
