"""The settings and their origins.

The sources, in order: the user's settings file, `[tool.idbg]` of the project's pyproject.toml, the environment, the
command line. A later source wins, in a table key by key. The old `MOCK_*` variables still work, and all four override
them. `MOCK_STRICT` is read here; `MOCK_ALIGNMENT` and `MOCK_MAX_MEMORY` change the preset `mock`
(`idbg.accelerators.registry`).
"""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, get_args

import msgspec

from idbg import plugins
from idbg.config import environment, places, settings_file
from idbg.config.settings_file import Written
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import SettingsError
from idbg.schema.programs import NO_ACCELERATOR, OUR_BACKENDS, Float64On

UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    UNITS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


class Keeping(NamedTuple):
    """Limits; 0: no limit. `sessions`: their number, `days`: their age, `size`: their bytes together, `session_size`:
    the bytes of one session.
    """

    sessions: int = 0
    days: float = 0.0
    size: int = 0
    session_size: int = 1 << 30


ALL = Keeping()
"""Keep every session, each with the default size."""


def bytes_of(text: int | str) -> int:
    """Parse a number of bytes: 500000, "500 MB", "2 GiB". Raises ValueError."""
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"{text} is negative")
        return text
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{text!r} is no size: write it as 500 MB or 2 GiB")
    return int(float(found[1]) * UNITS[found[2]])


log = logging.getLogger(__name__)
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
Size = int | str
"""Bytes, or a text: "500 MB", "2 GiB"."""
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Days = Annotated[float, msgspec.Meta(ge=0)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings. `keys`: an action of the screen -> its key. `options`: Inductor's options. `settings`: other
    settings of torch, as "dynamo.recompile_limit". `mode` and `stance`: "" leaves them to the program.

    `strict` and `dynamic`: None is the default of the command and of torch.compile. `editor`: "" is $VISUAL or $EDITOR.
    `accelerator`: "" is that of the program or the backend. `float64`: with "cpu", comparisons compute float64 on the
    CPU, as they do for devices without float64. `float64_memory`: the bytes of the device that its waiting values may
    have; 0: what the device has free.

    `keep_sessions` (their number), `keep_days` and `keep_size` (their bytes together) limit which sessions stay when a
    new one begins; `session_size` limits the bytes of one session. 0 is no limit.
    """

    backend: str = "aot"
    accelerator: str = ""
    strict: bool | None = None
    dynamic: bool | None = None
    device: str = ""
    float64: Float64On = "auto"
    float64_memory: Size = 0
    output: str = "debug_artifacts"
    keep_sessions: _Count = 0
    keep_days: _Days = 0
    keep_size: Size = 0
    session_size: Size = "1 GiB"
    theme: str = ""
    editor: str = ""
    keys: dict[str, str] = {}
    options: dict[str, bool | int | float | str] = {}
    mode: str = ""
    stance: str = ""
    settings: dict[str, bool | int | float | str] = {}

    @property
    def keeping(self) -> Keeping:
        """The limits on saved sessions."""
        return Keeping(self.keep_sessions, self.keep_days, bytes_of(self.keep_size), bytes_of(self.session_size))


TABLES = ("keys", "options", "settings")
# environment variable -> the setting that it sets
VARIABLES = {f"IDBG_{name.upper()}": name for name in Settings.__struct_fields__ if name not in TABLES}
BOOLEANS = ("strict", "dynamic")
SIZES = ("keep_size", "session_size", "float64_memory")
OTHER_VARIABLES = (
    *("IDBG_SETTINGS", "IDBG_ASCII", "IDBG_NATIVE"),
    *(environment.NICENESS, environment.PATH_ADDED, environment.SCRATCH),
)
"""Other variables that are read, here or by a child process."""
KEEP = ("keep_sessions", "keep_days", "keep_size")
_PLACE = re.compile(r"(cxx|compiler|command|cmd|flags|dir|path|root|url|prefix)$")
_PATH_OR_WORDS = re.compile(r"[/\\~]|(?<!,)\s")
MOCK = ("MOCK_STRICT", "MOCK_ALIGNMENT", "MOCK_MAX_MEMORY")
PROJECT_PATHS = ("output", "accelerator")
"""Settings that are paths relative to the folder of the pyproject.toml."""


class Sourced(NamedTuple):
    """A value of a setting, and its origin: "settings.toml:3", "IDBG_BACKEND", "--backend", "default"."""

    value: object
    origin: str


def default_accelerator(backend: str, environ: Mapping[str, str] = os.environ) -> str:
    """A backend's default accelerator: that of its package with the same name; mock for the backend mock or with a
    `MOCK_*` variable; else none, and then no rule is checked.
    """
    if backend not in OUR_BACKENDS and backend in plugins.names("idbg.accelerators"):
        return backend
    return "mock" if backend == "mock" or any(environ.get(name) for name in MOCK) else NO_ACCELERATOR


def path(environ: Mapping[str, str]) -> Path:
    """The path of the settings file, which may not exist."""
    named = environ.get("IDBG_SETTINGS")
    return places.expanded(named) if named else places.config() / "settings.toml"


def load(
    environ: Mapping[str, str], chosen: Mapping[str, object] | None = None, cwd: str | Path | None = None
) -> Settings:
    """The settings in force. `chosen`: those of the command line. `cwd`: a folder of the project (the working
    directory).

    Raises SettingsError, with the file and line or the variable.
    """
    values: dict[str, object] = {}
    for layer in _layers(environ, chosen or {}, cwd):
        for name, sourced in layer.items():
            table, dot, key = name.partition(".")
            if not dot:
                values[name] = sourced.value
            else:
                inner = values.setdefault(table, {})
                assert isinstance(inner, dict)
                inner[key] = sourced.value
    return msgspec.convert(values, Settings)


def is_set(name: str, environ: Mapping[str, str], cwd: str | Path | None = None) -> bool:
    """Whether a settings file or the environment has this setting. Raises as `load` does."""
    return any(name in layer for layer in _layers(environ, {}, cwd))


def explained(
    environ: Mapping[str, str], chosen: Mapping[str, object] | None = None, cwd: str | Path | None = None
) -> dict[str, list[Sourced]]:
    """Each setting and each key of a table ("options.max_autotune") -> the value in force, then the overridden values.

    Raises as `load` does.
    """
    found: dict[str, list[Sourced]] = {}
    for field in msgspec.structs.fields(Settings):
        if field.name not in TABLES:
            found[field.name] = [Sourced(field.default, "default")]
    for layer in _layers(environ, chosen or {}, cwd):
        for name, sourced in layer.items():
            found[name] = [sourced, *found.get(name, [])]
    return found


def project(cwd: str | Path | None = None) -> Path | None:
    """The pyproject.toml whose `[tool.idbg]` is in force. Raises SettingsError."""
    written = settings_file.of_project(_working_directory(cwd))
    return written.file if written else None


def _layers(
    environ: Mapping[str, str], chosen: Mapping[str, object], cwd: str | Path | None
) -> Iterator[dict[str, Sourced]]:
    """The values of each source, tables key by key; a later source wins."""
    strict = strict_from(environ)
    yield {} if strict is None else {"strict": Sourced(strict, "MOCK_STRICT")}
    user = _of_file(settings_file.of_user(path(environ), must_exist=bool(environ.get("IDBG_SETTINGS"))))
    yield user
    later = (_of_environment(environ), {name: Sourced(value, _flag(name, value)) for name, value in chosen.items()})
    yield _of_projects_own(_working_directory(cwd), user, later)
    yield from later


def _working_directory(cwd: str | Path | None) -> Path:
    try:
        return Path(cwd or os.getcwd())
    except FileNotFoundError:  # it was removed
        return Path("/")


def _of_project(cwd: Path) -> Written | None:
    """Raises SettingsError, also for an editor: cloning a project must not choose a command to run."""
    written = settings_file.of_project(cwd)
    if written is None:
        return None
    if "editor" in written.values:
        raise SettingsError(
            f"{written.place('editor')}: a project cannot choose your editor",
            hint="it is a command: set it in your own settings file (idbg config --path), or IDBG_EDITOR",
        )
    _refuse_commands(written)
    values = dict(written.values)
    for name in PROJECT_PATHS:
        text = values.get(name)
        if isinstance(text, str) and (name == "output" or text.endswith(".toml")) and not text.startswith(("/", "~")):
            values[name] = str(written.file.parent / text)
    return written._replace(values=values)


def _refuse_commands(written: Written) -> None:
    """Raises SettingsError for an option of torch that names a command or a path, such as the C++ compiler, which runs
    for every program.
    """
    for table in ("options", "settings"):
        values = written.values.get(table)
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, str) and value and (_PLACE.search(str(name)) or _PATH_OR_WORDS.search(value)):
                raise SettingsError(
                    f"{written.place(f'{table}.{name}')}: a project cannot choose a command or a folder of torch",
                    hint="set it in your own settings file (idbg config --path), or with a flag",
                )


def _of_projects_own(cwd: Path, user: dict[str, Sourced], later: tuple[dict[str, Sourced], ...]) -> dict[str, Sourced]:
    """The project's settings. It limits sessions only in its own folder: elsewhere there are sessions of other
    projects.
    """
    written = _of_project(cwd)
    found = _of_file(written)
    if written is None or not any(name in found for name in KEEP):
        return found
    named = next((layer["output"] for layer in (*reversed(later), found, user) if "output" in layer), None)
    output = os.path.expanduser(str(named.value if named else Settings().output))
    kept_in = Path(os.path.realpath(os.path.join(cwd, output)))
    if kept_in.is_relative_to(os.path.realpath(written.file.parent)):
        return found
    if str(written.file) not in _warned:
        _warned.add(str(written.file))
        log.warning("%s limits sessions, but %s is outside of it: all sessions stay", written.file, kept_in)
    return {name: value for name, value in found.items() if name not in KEEP}


def _of_file(written: Written | None) -> dict[str, Sourced]:
    if written is None:
        return {}
    _check(written)
    found: dict[str, Sourced] = {}
    for name, value in written.values.items():
        inside = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
        found |= {key: Sourced(each, written.place(key)) for key, each in inside.items()}
    return found


def _of_environment(environ: Mapping[str, str]) -> dict[str, Sourced]:
    _warn_of_unknown(environ)
    found: dict[str, Sourced] = {}
    for variable, name in VARIABLES.items():
        if text := environ.get(variable):
            found[name] = Sourced(_from_variable(variable, name, text), variable)
    return found


def _from_variable(variable: str, name: str, text: str) -> object:
    if name in BOOLEANS:
        return _boolean(variable, text)
    try:
        value = msgspec.structs.asdict(msgspec.convert({name: text}, Settings, strict=name in SIZES))[name]
        if name in SIZES:
            bytes_of(value)
    except (msgspec.ValidationError, ValueError) as error:
        values = get_args(Float64On) if name == "float64" else ()
        hint = f"it must be one of {', '.join(values)}" if values else _words(error)
        raise SettingsError(f"{variable} is {text!r}", hint=hint) from error
    return value


_warned: set[str] = set()


def _warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Warn once of each variable IDBG_... that is not known: it is a spelling mistake."""
    known = {*VARIABLES, *OTHER_VARIABLES}
    for variable in environ:
        if (
            variable.startswith("IDBG_")
            and not variable.startswith("IDBG_TEST_")
            and variable not in {*known, *_warned}
        ):
            _warned.add(variable)
            hint = did_you_mean(variable, known, "idbg config lists the settings")
            log.warning("%s has no effect: %s", variable, hint)


def _flag(name: str, value: object) -> str:
    if name == "strict":
        return "--strict" if value else "--warn"
    return f"--no-{name}" if value is False else f"--{name.replace('_', '-')}"


def strict_from(environ: Mapping[str, str]) -> bool | None:
    """The value of MOCK_STRICT; None where it is not set or empty. Raises SettingsError for another text than yes or
    no.
    """
    text = environ.get("MOCK_STRICT", "").strip()
    return _boolean("MOCK_STRICT", text) if text else None


def _check(written: Written) -> None:
    """Raises SettingsError for an unknown key or a value that is not valid, with file and line."""
    known = Settings.__struct_fields__
    for key in written.values:
        if key not in known:
            hint = did_you_mean(key, known, f"there are: {', '.join(known)}")
            raise SettingsError(f"{written.place(key)}: there is no setting {key!r}", hint=hint)
    try:
        msgspec.convert(written.values, Settings)
    except msgspec.ValidationError as error:
        where = str(error).partition(" - at `$.")[2].rstrip("`")
        key = re.split(r"[.\[]", where)[0]
        raise SettingsError(
            f"{written.place(_wrong_key(written.values.get(key), key))}: {key}: {_words(error)}",
            hint="see `idbg config` for the settings in force",
        ) from error
    for name in SIZES:
        try:
            bytes_of(written.values.get(name, 0))  # type: ignore[arg-type]  # its type was just checked
        except ValueError as error:
            raise SettingsError(f"{written.place(name)}: {name}: {error}", hint="0 is no limit") from error


def _wrong_key(value: object, name: str) -> str:
    """The key of a table whose value is not valid: msgspec does not report it."""
    for key, each in value.items() if isinstance(value, dict) else ():
        try:
            msgspec.convert({name: {key: each}}, Settings)
        except msgspec.ValidationError:
            return f"{name}.{key}"
    return name


def _words(error: Exception) -> str:
    what = str(error).partition(" - at `$")[0]
    return f"{what[:1].lower()}{what[1:]}"


def _boolean(variable: str, text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise SettingsError(f"{variable} is {text!r}", hint=f"it must be one of {', '.join(TRUE + FALSE)}")
