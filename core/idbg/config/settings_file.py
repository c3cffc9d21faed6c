"""Read the user's settings file, and `[tool.idbg]` of a pyproject.toml, with the line of each setting."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from idbg.schema.errors import SettingsError
from idbg.whole_file import read_whole

PROJECT = "pyproject.toml"
_TABLE = "tool.idbg"


class Written(NamedTuple):
    """The settings of a file, and the line of each setting and of each key of a table ("options.max_autotune")."""

    file: Path
    values: dict[str, object]
    lines: dict[str, int]

    def place(self, name: str) -> str:
        """file:line of the setting, from 1; the line of its table where its own is not found."""
        return f"{self.file}:{self.lines.get(name) or self.lines.get(name.partition('.')[0]) or 1}"


def of_user(file: Path, *, must_exist: bool) -> Written | None:
    """The user's settings file; None where there is none. Raises SettingsError, also for a missing one that
    `must_exist`.
    """
    text = _text(file)
    if text is None and must_exist:
        raise SettingsError(f"no settings file {file}", hint="IDBG_SETTINGS names it: fix or unset that")
    return None if text is None else Written(file, _parsed(file, text), _lines(text, ""))


def of_project(cwd: Path) -> Written | None:
    """`[tool.idbg]` of the nearest pyproject.toml that has one, from `cwd` upward; None where none has.

    Raises SettingsError.
    """
    for folder in (cwd, *cwd.parents):
        file = folder / PROJECT
        text = _text(file)
        if text is None or "idbg" not in text:
            continue
        tool = _parsed(file, text).get("tool")
        values = tool.get("idbg") if isinstance(tool, dict) else None
        if isinstance(values, dict):
            return Written(file, values, _lines(text, _TABLE))
    return None


def _text(file: Path) -> str | None:
    try:
        return read_whole(file).decode("utf-8-sig") if file.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {file}: {error}", hint="it must be UTF-8 text") from error


def _parsed(file: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number that Python does not read
        raise SettingsError(f"{file}: {error}", hint="settings are TOML: key = value, text in quotes") from error


_HEAD = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?")
_KEY = re.compile(r"""\s*((?:[\w.-]|"[^"]*"|'[^']*')+)\s*=""")


def _lines(text: str, table: str) -> dict[str, int]:
    """The line of each setting, and of each key of a table, below `table`."""
    found: dict[str, int] = {}
    for number, name in _names(text):
        inner = name if not table else name.removeprefix(f"{table}.") if name.startswith(f"{table}.") else ""
        if inner:
            found.setdefault(inner, number)
            found.setdefault(inner.partition(".")[0], number)
    return found


def _names(text: str) -> Iterator[tuple[int, str]]:
    """Each table and key with its full name and line. A multi-line string may look like one."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if head := _HEAD.fullmatch(line):
            table = _plain(head[1])
            yield number, table
        elif key := _KEY.match(line):
            yield number, f"{table}.{_plain(key[1])}" if table else _plain(key[1])


def _plain(name: str) -> str:
    """A key without its quotes and blanks: tool . "idbg" is tool.idbg."""
    return re.sub(r"""["']""", "", re.sub(r"\s*\.\s*", ".", name))
