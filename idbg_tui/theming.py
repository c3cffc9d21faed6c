"""Read and install themes.

A theme is a TOML file with the keys of textual.theme.Theme; its name is the file's. Ours are in themes/ (in a wheel:
`_themes`), a user's own in the folder `themes` beside the settings file.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme

from idbg.schema.errors import SettingsError

DEFAULT = "idbg-dark"
SIXTEEN = "ansi"
"""The theme for terminals of 16 colours, and of 8."""
_KEYS = {field.name for field in fields(Theme)} - {"name"}
_SHIPPED = (Path(__file__).parent / "_themes", Path(__file__).parents[1] / "themes")


def shipped() -> Path:
    """The folder of the themes that come with idbg."""
    return next((folder for folder in _SHIPPED if folder.is_dir()), _SHIPPED[0])


def read(path: Path) -> Theme:
    """The theme in a file. Raises SettingsError if it is not one."""
    hint = f"compare it with {shipped() / (DEFAULT + '.toml')}"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        theme = msgspec.convert({**values, "name": path.stem}, Theme)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"theme {path}: {error}", hint=hint) from None
    if unknown := sorted(values.keys() - _KEYS):
        raise SettingsError(f"theme {path}: a theme has no {', '.join(unknown)}", hint=hint)
    for name, colour in values.items():
        if not isinstance(colour, str):
            continue
        try:
            Color.parse(colour)
        except ColorParseError:
            raise SettingsError(f'theme {path}: {name} = "{colour}" is not a colour', hint=hint) from None
    return theme


def themes(folders: Sequence[Path]) -> Iterator[Theme | SettingsError]:
    """Every theme in these folders, in order; a file that is no theme yields its error."""
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            try:
                yield read(path)
            except SettingsError as error:
                yield error


def install(app: App[Any], folders: Sequence[Path], wanted: str) -> str:
    """Register every theme in these folders, and use the `wanted` one ("": ours); returns what is wrong, or ""."""
    problem = ""
    for theme in themes(folders):
        if isinstance(theme, SettingsError):
            problem = theme.message
        else:
            app.register_theme(theme)
    if wanted and wanted not in app.available_themes:
        problem = f'there is no theme "{wanted}"; there are: {", ".join(sorted(app.available_themes))}'
    app.theme = wanted if wanted in app.available_themes else DEFAULT
    return problem
