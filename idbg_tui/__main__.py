"""Which program or saved session does the user want on the screen?

What is wrong with the command line, the settings or the folders is said before there is a screen.
"""

import argparse
import asyncio
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import idbg
from idbg.config import places, settings
from idbg.config.arguments import add_arguments, settle
from idbg.config.command_line import split
from idbg.schema.errors import BadInput
from idbg.session.reading import is_session
from idbg.session.session import Session
from idbg_tui.terminal.watchdog import ScreenWatchdog

if TYPE_CHECKING:
    from idbg_tui.app import IdbgApp

BAD_USAGE = 2
HANG_UP = 0.5  # seconds after the terminal is gone, for the kernel's own signal to come first

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
    args = _parser().parse_args(ours)
    if args.program is None:
        print(TRY, end="")
        return BAD_USAGE if ours else 0
    try:
        session, chosen = _open(args, programs)
    except BadInput as error:
        print(f"idbg-tui: {error}", file=sys.stderr)
        return BAD_USAGE
    with session:
        gc.disable()  # while modules are imported there is nothing to collect, and looking for it takes 0.03 s
        from idbg_tui import theming
        from idbg_tui.app import IdbgApp

        app = IdbgApp(session, chosen)
        if not chosen.theme and app.console.color_system == "standard":
            app.theme = theming.SIXTEEN  # made for it: others come out as whatever of the 16 is nearest
        gc.freeze()  # modules stay: later collections need not look at them
        gc.enable()
        return _show(app)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="idbg-tui", description="A terminal debugger for torch.compile.")
    parser.add_argument("--version", action="version", version=f"idbg {idbg.__version__}")
    add_arguments(parser, required=False)
    parser.add_argument("--theme", help="a theme's name (idbg-dark)")
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


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws to stderr
        raise BadInput("this is not a terminal", hint="idbg run FILE.py reports without one")


def _show(app: "IdbgApp") -> int:
    """Run the app; whatever signal ends it, the terminal is given back as it was."""
    ended: list[int] = []
    app.watchdog = watchdog = ScreenWatchdog()

    def end(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and watchdog.is_away:
            return  # it is for the editor
        ended.append(number)
        watchdog.asked(number)
        if len(ended) > 1:
            raise SystemExit(128 + number)  # the app did not leave when it was asked
        try:
            asyncio.get_running_loop().call_soon_threadsafe(app.exit)
        except RuntimeError:
            raise SystemExit(128 + number) from None  # no screen yet, or no longer

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    threading.Thread(target=watch_terminal, args=(sys.stdin.fileno(), ended), daemon=True).start()
    try:
        app.run()
    finally:
        watchdog.stop()
    return 128 + ended[0] if ended else app.return_code or 0


def watch_terminal(terminal: int, ended: list[int]) -> None:
    """Wait until the terminal is gone, and hang up ourselves if nobody has.

    The kernel does it only for a controlling terminal; without, Textual would read the end of its input for ever.
    """
    poller = select.poll()
    poller.register(terminal, 0)  # a hang-up is told unasked
    if poller.poll() and not ended:
        time.sleep(HANG_UP)
        if not ended:
            os.kill(os.getpid(), signal.SIGHUP)


if __name__ == "__main__":
    sys.exit(main())
