"""Print versions, the files and folders that idbg uses, and broken plug-ins."""

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

import idbg
from idbg import plugins
from idbg.accelerators import adapter, registry
from idbg.accelerators.parse import parse
from idbg.cli import exits, output
from idbg.config import places, settings
from idbg.constraints import broken_kinds
from idbg.schema.errors import AcceleratorError

HELP = "print versions, and every path that is used"
ABOUT = """\
Print the installed versions, the files and folders that idbg reads and writes, and plug-ins that cannot be used, with
the reason. Start a bug report with it.
"""
EXAMPLES = (("idbg info", "as text"), ("idbg info --json", "as JSON"))
EXITS = {exits.DONE: "always"}
SEE = ("config", "accelerators", "switches")
PACKAGES = ("torch", "triton", "textual", "rich", "plotext", "msgspec", "numpy", "safetensors", "pygments")


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """`versions`: None where a package is not installed. `missing`: paths that do not exist (yet). `backends`: those of
    other packages. `broken`: plug-ins that cannot be used ("idbg.backends: name") -> the reason.
    """

    schema: str = "idbg.info/1"
    versions: dict[str, str | None]
    paths: dict[str, str]
    missing: tuple[str, ...]
    accelerators: tuple[str, ...]
    backends: tuple[str, ...]
    broken: dict[str, str]
    settings: settings.Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has only the shared flags."""


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    info = collect()
    output.report(lambda: info, lambda: "\n".join(_lines(info)))
    return exits.DONE


def _lines(info: Info) -> Iterator[str]:
    for name, number in info.versions.items():
        yield f"{name:12} {number or 'not installed'}"
    yield ""
    for name, path in info.paths.items():
        yield f"{name:14} {path}{'  (not there yet)' if name in info.missing else ''}"
    yield f"\naccelerators   {', '.join(info.accelerators)}"
    if info.backends:
        yield f"backends       {', '.join(info.backends)} (of other packages)"
    for plugin, why in info.broken.items():
        yield f"broken plug-in {plugin}: {why}"


def collect() -> Info:
    """Collect everything without importing torch."""
    chosen = settings.load(os.environ)
    paths = _paths(chosen)
    return Info(
        versions={
            "idbg": idbg.__version__,
            "python": f"{platform.python_version()} ({platform.system()} {platform.machine()})",
            **{name: _version(name) for name in PACKAGES},
        },
        paths={name: str(path) for name, path in paths.items()},
        missing=tuple(name for name, path in paths.items() if not path.exists()),
        accelerators=tuple(registry.names()),
        backends=plugins.names(adapter.GROUP),
        broken=_broken(),
        settings=chosen,
    )


def _broken() -> dict[str, str]:
    """Import the plug-ins of each group. Returns those that cannot be used, with the reason."""
    accelerators = {}
    for name in plugins.names("idbg.accelerators"):
        try:
            parse(registry.find(name)[0])
        except AcceleratorError as error:
            accelerators[name] = error.message
    groups = {
        "idbg.constraints": broken_kinds(),
        "idbg.accelerators": accelerators,
        adapter.GROUP: adapter.broken(),
    }
    return {f"{group}: {name}": why for group, broken in groups.items() for name, why in broken.items()}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _paths(chosen: settings.Settings) -> dict[str, Path]:
    environ = os.environ
    facts = {
        "python": Path(sys.executable),
        "idbg": Path(idbg.__file__).parent,
        "settings": settings.path(environ),
        "sessions": places.expanded(chosen.output).absolute(),
        "presets": registry.PRESETS,
        "inductor cache": places.inductor_cache(environ),
        "triton cache": places.triton_cache(environ),
    }
    themes = _themes()
    return facts | ({"themes": themes} if themes else {})


def _themes() -> Path | None:
    """The folder of themes: in the installed package, or in the checkout."""
    spec = PathFinder.find_spec("idbg_tui")
    places = spec.submodule_search_locations if spec else None
    for place in places or ():
        for folder in (Path(place) / "_themes", Path(place).parent / "themes"):
            if folder.is_dir():
                return folder
    return None
