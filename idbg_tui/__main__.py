"""The command idbg-tui: open a program or a saved session on the screen.

Errors of the command line, the settings or the folders are reported before there is a screen.
"""

import argparse
import contextlib
import gc
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from idbg.cli import answer_completion, screen
from idbg.cli.sessions import output_folder
from idbg.config import examples, launching, places, settings
from idbg.config.arguments import settle
from idbg.config.command_line import split
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.session.files import is_session

if TYPE_CHECKING:
    from textual.app import App

    from idbg.session.session import Session
    from idbg_tui.terminal.runner import AppRunner

BAD_USAGE = 2

TRY = """\
idbg-tui FILE.py[:NAME]      compile a program and look at everything that comes of it
idbg-tui -m PACKAGE.MODULE   the same for a module
idbg-tui SESSION_FOLDER      open a saved session; it needs no torch
idbg-tui                     on a terminal: choose among the last sessions and the examples
idbg-tui --tour              five minutes with a small model: where everything is

Try:  idbg-tui examples/resnet.py
More: idbg-tui --help, idbg info
"""


def main(argv: Sequence[str] | None = None) -> int:
    """`idbg-tui`: 0 when the user quits, 2 for bad usage, 128 + N when signal N ended it."""
    gc.disable()  # until the panes are there: what is imported stays, and looking through it took a third of the start
    ours, programs = split(sys.argv[1:] if argv is None else argv)
    answer_completion("idbg-tui")
    args = screen.parsed(ours)
    if args.tour and args.program is not None:
        screen.refuse("--tour has a program of its own", "leave one of them out")
    is_command = args.program is None and bool(programs)
    nothing_named = args.program is None and not args.tour and not is_command
    if nothing_named and (args.module or not _is_terminal()):
        print(TRY, end="")
        return BAD_USAGE if ours else 0
    try:
        places.check_here()
        if nothing_named:
            return _welcome(args, programs)
        opened = _tour(args, programs) if args.tour else _open(args, programs)
    except BadInput as error:
        print(f"idbg-tui: {error}", file=sys.stderr)
        return BAD_USAGE
    from idbg_tui.terminal.runner import AppRunner

    return _show(opened, AppRunner())


class Opened(NamedTuple):
    """What is to be shown: `opener` makes its session, raising BadInput; `label` names it on the first frame."""

    opener: "Callable[[], Session]"
    label: str
    settings: settings.Settings
    tour: bool = False


def _show(opened: Opened, runner: "AppRunner") -> int:
    """The screen over a session, until it is left."""
    from idbg_tui.app import IdbgApp
    from idbg_tui.terminal.watchdog import ScreenWatchdog

    app = IdbgApp(opened.opener, opened.settings, label=opened.label, tour=opened.tour)
    _suit_terminal(app, opened.settings)
    app.watchdog = ScreenWatchdog()
    try:
        status = runner.show(app, app.watchdog)
        if app.session_folder:
            _report(app.session_folder)
        return status
    finally:
        app.close_session()


def _report(folder: str) -> None:
    """Print where the session is, and how it is opened again; nobody may be there to read it."""
    from idbg.format import file_names

    path = file_names.from_here(folder)
    with contextlib.suppress(OSError):
        print(f"session  {path}\nopen it  idbg open {shlex.quote(path)}", flush=True)


def _welcome(args: argparse.Namespace, programs: tuple[str, ...]) -> int:
    """The screen that offers what can be opened, then what was chosen; raises BadInput."""
    named = {name: getattr(args, name) for name in ("theme", "output") if getattr(args, name)}
    chosen = settings.load(os.environ, named)
    from idbg.config.examples import TOUR, Example
    from idbg_tui.terminal.runner import AppRunner
    from idbg_tui.welcome.app import Welcome
    from idbg_tui.welcome.offers import Choosable

    def open_offer(choice: Choosable) -> Opened:
        import idbg_tui.app  # noqa: F401  # while something else is read, and not when the screen is to come

        if isinstance(choice, Example) and choice.name == TOUR:
            return _tour(args, programs)
        path = str(choice.path) if isinstance(choice, Example) else choice.folder
        return _open(argparse.Namespace(**{**vars(args), "program": path}), programs)

    gc.enable()
    app = Welcome(places.expanded(chosen.output).absolute(), chosen.theme, open_offer)
    _suit_terminal(app, chosen)
    runner = AppRunner()
    status = runner.show(app)
    return _show(app.return_value, runner) if app.return_value is not None else status


def _suit_terminal(app: "App[Any]", chosen: settings.Settings) -> None:
    from idbg_tui import theming

    if not chosen.theme and app.console.color_system == "standard":
        app.theme = theming.SIXTEEN  # made for it: others come out as whatever of the 16 is nearest


def _open(args: argparse.Namespace, programs: tuple[str, ...]) -> Opened:
    """A live session, a job of ranks, or a saved session; raises BadInput."""
    if launching.is_requested(args) or args.program is None:
        return _job(args, programs)
    folder = None if args.module else _session_named(args.program, args.output)
    if folder is not None:
        _check_terminal()
        return Opened(partial(_saved, folder), folder.name, _settings(args))
    if (source := _trace_named(args)) is not None:
        _check_terminal()
        opener = partial(_importing, source, output_folder(args.output), args.accelerator or "")
        return Opened(opener, source.name, _settings(args))
    settled = settle(args, programs, strict=False)
    _check_terminal()
    output = places.expanded(settled.settings.output)
    return Opened(
        partial(_live, settled.program, settled.target, output, settled.settings),
        settled.program.label,
        settled.settings,
    )


def _settings(args: argparse.Namespace) -> settings.Settings:
    """The settings of a screen on which nothing is run."""
    return settings.load(os.environ, {"theme": args.theme} if args.theme else {})


def _importing(source: Path, output: Path, accelerator: str) -> "Session":
    from idbg.session.importing import imported_before
    from idbg.session.session import Session

    before = imported_before(source, output, accelerator)
    return _saved(before) if before is not None else Session.importing(source, output, accelerator)


def _job(args: argparse.Namespace, programs: tuple[str, ...]) -> Opened:
    """The session of a job of ranks, which runs meanwhile; raises BadInput."""
    command, program = launching.job(args, programs, os.getcwd())
    named = {name: getattr(args, name) for name in ("theme", "output") if getattr(args, name)}
    chosen = settings.load(os.environ, named)
    _check_terminal()
    folder = places.expanded(args.session).absolute() if args.session else None
    return Opened(partial(_running_job, command, program, chosen, folder), program.label, chosen)


def _running_job(
    command: tuple[str, ...], program: Program, chosen: settings.Settings, folder: Path | None
) -> "Session":
    from idbg.session import launch
    from idbg.session.session import Session

    place = launch.new_session(program, places.expanded(chosen.output), folder, chosen.keeping.session_size)
    return Session.of_job(command, program, place)


def _saved(folder: Path) -> "Session":
    from idbg.session.deferred import WHOLE
    from idbg.session.files import LOG
    from idbg.session.session import Session

    is_long = os.path.getsize(folder / LOG) > WHOLE
    return Session.streamed(folder) if is_long else Session.open(folder)


def _live(program: Program, target: Target, output: Path, chosen: settings.Settings) -> "Session":
    from idbg.session.session import Session

    return Session(program, target, output=output, keeping=chosen.keeping)


def _session_named(text: str, output: str | None) -> Path | None:
    """The folder of a session: by its path, its name in the output folder, or as `last`; None: it is none."""
    if os.path.isfile(text) or text.partition(":")[0].endswith(".py"):
        return None  # at once: a program is what is mostly named
    if is_session(Path(text)):
        return Path(text)
    from idbg.session.index import named

    return named(text, output_folder(output))


def _trace_named(args: argparse.Namespace) -> Path | None:
    """The trace that can be imported; None: it is none."""
    if args.module or args.program.partition(":")[0].endswith(".py"):
        return None  # at once: a program is what is mostly named
    from idbg.traces.sources import kind_of

    source = places.expanded(args.program)
    return source if kind_of(source) is not None else None


def _tour(args: argparse.Namespace, programs: tuple[str, ...]) -> Opened:
    """A session of the tour's example, for the target of the tour, whatever the settings are; raises BadInput."""
    known = {example.name: example for example in examples.shipped()}
    if examples.TOUR not in known:
        raise BadInput("the examples that come with idbg are not installed", hint="install idbg again")
    spoken_of = {"module": False, "backend": "aot", "accelerator": "mock", "device": "cpu", "strict": False}
    path = str(known[examples.TOUR].path)
    opened = _open(argparse.Namespace(**{**vars(args), **spoken_of, "program": path}), programs)
    return opened._replace(tour=True)


def _check_terminal() -> None:
    if not _is_terminal():
        raise BadInput("this is not a terminal", hint="idbg run FILE.py reports without one")


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()  # Textual draws to stderr


if __name__ == "__main__":
    sys.exit(main())
