"""What does the user want by default? A settings file, then the environment, then the command line; the later wins.

The `MOCK_*` variables of the earlier system still work, and lose to all three. `MOCK_STRICT` is read here;
`MOCK_ALIGNMENT` and `MOCK_MAX_MEMORY` change the preset `mock` where its text is found (`idbg.accelerators.registry`).
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import msgspec

from idbg import plugins
from idbg.config import places
from idbg.schema.errors import SettingsError
from idbg.schema.programs import OUR_BACKENDS, Float64On

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set. `keys` maps an action of the UI to a key; `options` are Inductor's, `settings` torch's others,
    as "dynamo.recompile_limit"; `mode` and `stance` "" are the program's.

    `strict` and `dynamic` None mean: as the front end and torch.compile have it. `editor` "" means $VISUAL or $EDITOR,
    `accelerator` "" that of the backend (`default_accelerator`). `float64` "cpu": comparisons compute in float64 on the
    CPU, as they do on devices that have none.
    """

    backend: str = "aot"
    accelerator: str = ""
    strict: bool | None = None
    dynamic: bool | None = None
    device: str = ""
    float64: Float64On = "auto"
    output: str = "debug_artifacts"
    theme: str = ""
    editor: str = ""
    keys: dict[str, str] = {}
    options: dict[str, bool | int | float | str] = {}
    mode: str = ""
    stance: str = ""
    settings: dict[str, bool | int | float | str] = {}


# environment variable -> the setting that it sets
VARIABLES = {
    "IDBG_BACKEND": "backend",
    "IDBG_ACCELERATOR": "accelerator",
    "IDBG_STRICT": "strict",
    "IDBG_DYNAMIC": "dynamic",
    "IDBG_DEVICE": "device",
    "IDBG_FLOAT64": "float64",
    "IDBG_OUTPUT": "output",
    "IDBG_THEME": "theme",
    "IDBG_EDITOR": "editor",
}
BOOLEANS = ("strict", "dynamic")


def default_accelerator(backend: str) -> str:
    """The accelerator that a backend is for where nobody names one: its own package's of the same name, else mock."""
    of_others = backend not in OUR_BACKENDS
    return backend if of_others and backend in plugins.names("idbg.accelerators") else "mock"


def path(environ: Mapping[str, str]) -> Path:
    """Where the settings file is, or would be."""
    named = environ.get("IDBG_SETTINGS")
    return places.expanded(named) if named else places.config() / "settings.toml"


def load(environ: Mapping[str, str], chosen: Mapping[str, object] | None = None) -> Settings:
    """The settings in force; `chosen` are the command line's, without those that it does not name.

    Raises SettingsError, with the file and line or the variable.
    """
    values: dict[str, object] = {}
    if (strict := strict_from(environ)) is not None:
        values["strict"] = strict
    values |= _from_file(path(environ), must_exist=bool(environ.get("IDBG_SETTINGS")))
    for variable, name in VARIABLES.items():
        text = environ.get(variable)
        if text:
            values[name] = _boolean(variable, text) if name in BOOLEANS else text
            if name == "float64" and text not in get_args(Float64On):
                raise SettingsError(
                    f"{variable} is {text!r}", hint=f"it must be one of {', '.join(get_args(Float64On))}"
                )
    values |= chosen or {}
    return msgspec.convert(values, Settings)


def strict_from(environ: Mapping[str, str]) -> bool | None:
    """What MOCK_STRICT says; None where it is not set or empty. Raises SettingsError where it is no yes or no."""
    text = environ.get("MOCK_STRICT", "").strip()
    return _boolean("MOCK_STRICT", text) if text else None


def _from_file(file: Path, *, must_exist: bool) -> dict[str, object]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if not must_exist:
            return {}
        raise SettingsError(f"no settings file {file}", hint="IDBG_SETTINGS names it: mend or unset that") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {file}: {error}", hint="it must be UTF-8 text") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}", hint="settings are TOML: key = value, text in quotes") from error
    _check(file, text, values)
    return values


def _check(file: Path, text: str, values: dict[str, object]) -> None:
    known = Settings.__struct_fields__
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
            raise SettingsError(f"{file}:{_line_of(text, key)}: there is no setting {key!r}", hint=hint)
    try:
        msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        keys = re.findall(r"\w+", where)
        key = keys[0] if keys else ""
        raise SettingsError(
            f"{file}:{_line_of(text, key)}: {key}: {what[:1].lower()}{what[1:]}",
            hint="see `idbg info` for the settings in force",
        ) from error


def _line_of(text: str, key: str) -> int:
    """The 1-based line where the file gives a value, or a table, to this top-level key."""
    name = re.escape(key)
    wanted = re.compile(rf"""\s*\[?\s*["']?{name}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if wanted.match(line)), 1)


def _boolean(variable: str, text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise SettingsError(f"{variable} is {text!r}", hint=f"it must be one of {', '.join(TRUE + FALSE)}")
