"""Find accelerators by name or path, and the rules of a target.

A preset is a TOML file in `presets/`, or an entry point `idbg.accelerators` of another package that holds the file's
path, or an Accelerator. Both front ends load this: it imports no torch.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from idbg import plugins
from idbg.accelerators import edit
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import LARGEST, parse, too_large, unparse
from idbg.accelerators.tables import LARGEST_NUMBER
from idbg.config import places
from idbg.config.settings import default_accelerator
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import AcceleratorError, SettingsError
from idbg.schema.programs import NO_ACCELERATOR, Target

NO_RULES = """\
# No accelerator is chosen, so no rule is checked. Choose one, or write the
# rules of your own here: docs/accelerators.md has all kinds.
name = "none"
description = "No rules: nothing is checked"
"""
PRESETS = Path(__file__).parent / "presets"


def find(name_or_path: str) -> tuple[str, str]:
    """The TOML text of a preset or a file, and the path it came from. Raises AcceleratorError if there is none."""
    if name_or_path == NO_ACCELERATOR:
        return NO_RULES, name_or_path
    if name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path:
        return _read(places.expanded(name_or_path))
    if name_or_path in _own():
        return _read(PRESETS / f"{name_or_path}.toml")
    if name_or_path in plugins.names("idbg.accelerators"):
        return _plugged(name_or_path)
    near = did_you_mean(name_or_path, names())
    raise AcceleratorError(
        f'there is no accelerator "{name_or_path}"',
        hint=f"{near} There are: {', '.join(names())}; or give the path of a .toml file".lstrip(),
    )


def names() -> list[str]:
    """Every preset that `find` knows by name: our own first, then those of plug-ins."""
    own = _own()
    return own + sorted(set(plugins.names("idbg.accelerators")) - set(own))


def _own() -> list[str]:
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def is_preset(name: str) -> bool:
    """Whether `name` is one of `names()`; plug-ins are looked for only where it is none of ours."""
    return name == NO_ACCELERATOR or name in _own() or name in plugins.names("idbg.accelerators")


def rules_for(target: Target) -> tuple[str, Path | None]:
    """The target's rules as valid TOML text, and the file that they are in if it is the user's own and not a preset.

    The `MOCK_*` variables apply to the preset `mock`. Raises AcceleratorError or SettingsError.
    """
    if target.rules:
        text, path, place = target.rules, None, target.accelerator
    else:
        text, place = find(target.accelerator)
        path = None if is_preset(target.accelerator) else Path(place).absolute()
        if target.accelerator == "mock":
            text = with_mock_variables(text, os.environ)
    try:
        parse(text)
    except AcceleratorError as error:
        line = f":{error.line}" if error.line else ""
        raise AcceleratorError(f"{place}{line}: {error.message}", hint=error.hint, line=error.line) from error
    return text, path


def for_backend(target: Target, backend: str) -> Target:
    """The target with another backend. An accelerator that was only the old backend's own goes with it, to make room
    for the new one's, unless somebody edited its rules; so does mock, which is nobody's hardware.
    """
    moved = replace(target, backend=backend, own_backend=False)
    own = default_accelerator(backend)
    gives_way = target.accelerator in (default_accelerator(target.backend), "mock")
    if not gives_way or target.accelerator == own or (target.accelerator == "mock" and own == NO_ACCELERATOR):
        return moved
    edited = rules_for(replace(target, rules=""))[0] != target.rules
    return moved if edited else replace(moved, accelerator=own, rules="")


def decode(data: bytes) -> str:
    """The text of an accelerator file. Raises AcceleratorError, with the line that is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise AcceleratorError("this is not UTF-8 text", hint="save the file as UTF-8", line=line) from None


def _read(path: Path) -> tuple[str, str]:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # a pipe or a device may have no end
            what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
            raise AcceleratorError(f"{path} cannot be read: it is {what}", hint="give the path of a .toml file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise AcceleratorError(f"there is no file {path}", hint=f"presets are: {', '.join(names())}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AcceleratorError(f"{path} cannot be read: {reason}", hint="give the path of a .toml file") from None
    if len(data) > LARGEST:
        raise too_large(str(path))
    try:
        return decode(data), str(path)
    except AcceleratorError as error:
        raise AcceleratorError(f"{path}:{error.line}: {error.message}", hint=error.hint, line=error.line) from None


def _plugged(name: str) -> tuple[str, str]:
    loaded = plugins.load("idbg.accelerators")
    held = loaded.values.get(name)
    if isinstance(held, str | Path):
        return _read(Path(held))
    if isinstance(held, Accelerator):
        return unparse(held), name
    why = loaded.broken.get(name, f"its entry point holds a {type(held).__name__}, not a path or an Accelerator")
    raise AcceleratorError(
        f'the accelerator "{name}" of another package cannot be used: {why}', hint="fix or uninstall that package"
    )


def with_mock_variables(text: str, environ: Mapping[str, str]) -> str:
    """The text with MOCK_ALIGNMENT and MOCK_MAX_MEMORY applied. Raises SettingsError for a bad value."""
    if alignment := environ.get("MOCK_ALIGNMENT", "").strip():
        text = edit.set_first(text, "alignment", "multiple", _number("MOCK_ALIGNMENT", alignment, least=1))
    if memory := environ.get("MOCK_MAX_MEMORY", "").strip():
        limit = float("inf") if memory.lower() == "inf" else _number("MOCK_MAX_MEMORY", memory, least=0)
        text = edit.set_first(text, "memory", "max_bytes", limit)
    return text


def _number(variable: str, value: str, *, least: int) -> int:
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if not least <= number <= LARGEST_NUMBER:
        inf = " or inf" if variable == "MOCK_MAX_MEMORY" else ""
        raise SettingsError(
            f"{variable} is {value!r}", hint=f"set it to a whole number, {least} or more{inf}, or unset it"
        )
    return number
