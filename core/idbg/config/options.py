"""Parse NAME=VALUE options, and assign them to a family of backends.

`max_autotune` is an option of Inductor, `config` of OpenVINO. A target records the family of its options, and a backend
of another family does not get them.
"""

import math
import re
from collections.abc import Mapping

import msgspec

from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue

INDUCTOR = "inductor"
# mock and eager compile nothing: they check Inductor's options and do not use them
_OURS = ("aot", "inductor", "aoti", "mock", "eager")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

_EXAMPLES = {
    "--option": ("an option", "max_autotune=true"),
    "--setting": ("a setting", "dynamo.recompile_limit=2"),
    "--with": ("a switch", "max_autotune=true"),
}


def family(backend: str) -> str:
    """The family of a backend's options: Inductor's, or its own."""
    return INDUCTOR if backend in _OURS else backend


def parse(text: str, flag: str = "--option") -> tuple[str, OptionValue]:
    """Parse `max_autotune=true` to a name and a typed value; lists, tables and quoted texts are JSON.

    Raises BadInput with the name of the `flag`.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        what, example = _EXAMPLES.get(flag, _EXAMPLES["--option"])
        raise BadInput(f"{flag} {text}: {what} is NAME=VALUE", hint=f"for example {flag} {example}")
    if value.lower() in _WORDS:
        return name, _WORDS[value.lower()]
    if re.fullmatch(r"[+-]?[0-9]+", value) and len(value) < 20:
        return name, int(value)
    if value.startswith(("{", "[", '"')):
        return name, _json(f"{flag} {text}", value)
    try:
        number = float(value)
    except ValueError:
        return name, value
    return name, number if math.isfinite(number) else value  # JSON has no infinity and NaN


def _json(text: str, value: str) -> OptionValue:
    try:
        decoded: OptionValue = msgspec.json.decode(value, type=OptionValue)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"{text}: the value is nested too deeply", hint="give a list or a table of plain values"
        ) from error
    except msgspec.DecodeError as error:
        raise BadInput(f"{text}: the value is not JSON", hint="quote it for the shell") from error
    return decoded


def nested(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Turn names with a dot into tables: `config.NAME=x` is `config={"NAME": "x"}`. This is for backends of other
    packages, which get torch.compile(options=...).

    Raises BadInput where a name is both a table and a value.
    """
    tables = {name: value for name, value in options.items() if "." not in name}
    for name, value in options.items():
        table, dot, key = name.partition(".")
        if not dot:
            continue
        inner = tables.get(table, {})
        if not isinstance(inner, dict) or isinstance(value, (dict, list)):
            raise BadInput(
                f"the options {table} and {name} cannot both be", hint=f"write {table} as JSON, or each of its names"
            )
        tables[table] = {**inner, key: value}
    return tables
