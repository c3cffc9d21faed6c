"""Which program or saved session does the user want on the screen?

What is wrong with the command line, the settings or the folders is said before there is a screen.
"""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import idbg
from idbg.config import examples, places, settings
from idbg.config.arguments import add_arguments, settle
from idbg.config.command_line import split
from idbg.schema.errors import BadInput
from idbg.session.files import is_session
from idbg.session.session import Session

BAD_USAGE = 2

TRY = """\
idbg-tui FILE.py[:NAME]      compile a program and look at everything that comes of it
idbg-tui -m PACKAGE.MODULE   the same for a module
idbg-tui SESSION_FOLDER      open a saved session; it needs no torch

Try:  idbg-tui examples/resnet.py
More: idbg-tui --help, idbg info
"""


def main(argv: Sequence[str] | None = None) -> int:
    """`idbg-tui`: 0 when the user quits, 2 for bad usage, 128 + N when signal N ended it."""
    ours, programs = split(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    args = parser.parse_args(ours)
    if args.tour and args.program is not None:
        parser.error("--tour has a program of its own")
    if args.program is None and not args.tour:
        print(TRY, end="")
        return BAD_USAGE if ours else 0
    try:
        session, chosen = _tour(args, programs) if args.tour else _open(args, programs)
    except BadInput as error:
        print(f"idbg-tui: {error}", file=sys.stderr)
        return BAD_USAGE
    with session:
        return _show(session, chosen, tour=args.tour)


def _show(session: Session, chosen: settings.Settings, *, tour: bool) -> int:
    """The screen over a session, until it is left."""
    gc.disable()  # while modules are imported there is nothing to collect, and looking for it takes 0.03 s
    from idbg_tui import theming
    from idbg_tui.app import IdbgApp
    from idbg_tui.terminal.ending import Ending
    from idbg_tui.terminal.watchdog import ScreenWatchdog

    app = IdbgApp(session, chosen, tour=tour)
    if not chosen.theme and app.console.color_system == "standard":
        app.theme = theming.SIXTEEN  # made for it: others come out as whatever of the 16 is nearest
    gc.freeze()  # modules stay: later collections need not look at them
    gc.enable()
    app.watchdog = ScreenWatchdog()
    return Ending().show(app, app.watchdog)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="idbg-tui", description="A terminal debugger for torch.compile.")
    parser.add_argument("--version", action="version", version=f"idbg {idbg.__version__}")
    add_arguments(parser, required=False)
    parser.add_argument("--theme", help="a theme's name (idbg-dark)")
    parser.add_argument("--tour", action="store_true", help="five minutes with a small model: where everything is")
    parser.epilog = "FILE.py may also be the folder of a saved session."
    return parser


def _open(args: argparse.Namespace, programs: tuple[str, ...]) -> tuple[Session, settings.Settings]:
    """A live session, or a saved one; raises BadInput."""
    folder = Path(args.program)
    if folder.is_dir() and not args.module and is_session(folder):
        chosen = settings.load(os.environ, {"theme": args.theme} if args.theme else {})
        _check_terminal()
        return Session.open(folder), chosen
    asked = settle(args, programs, strict=False)
    _check_terminal()
    output = places.expanded(asked.settings.output)
    return Session(asked.program, asked.target, output=output), asked.settings


def _tour(args: argparse.Namespace, programs: tuple[str, ...]) -> tuple[Session, settings.Settings]:
    """A session of the tour's example, for what the tour speaks of, whatever the settings say; raises BadInput."""
    known = {example.name: example for example in examples.shipped()}
    if examples.TOUR not in known:
        raise BadInput("the examples that come with idbg are not installed", hint="install idbg again")
    args.program, args.module = str(known[examples.TOUR].path), False
    args.backend, args.accelerator, args.device, args.strict = "aot", "mock", "cpu", False
    return _open(args, programs)


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws to stderr
        raise BadInput("this is not a terminal", hint="idbg run FILE.py reports without one")


if __name__ == "__main__":
    sys.exit(main())
