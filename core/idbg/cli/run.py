"""What does one run of a program come to, as JSON for a machine or as text for a person?"""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from idbg.cli import BAD_USAGE, FAILED, printing
from idbg.program_args import add_arguments as add_program_arguments
from idbg.program_args import settle
from idbg.progress import Progress
from idbg.run import Run
from idbg.session import Session

HELP = "compile and run a program once, and report what came of it"


class Stopped(BaseException):
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout, and nothing else there")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    asked = settle(args, argv, strict=True)
    with _signals(), Session(asked.program, asked.target, output=Path(asked.settings.output).expanduser()) as session:
        progress = Progress(sys.stderr)
        session.subscribe(progress)
        try:
            number = session.run()
            session.wait()
        except Stopped as stopped:
            _stop(session, progress)
            return stopped.status
        finally:
            progress.clear()
        done = session.history.runs[number]
    _report(done, as_json=args.json, folder=session.folder)
    return status(done)


def status(run: Run) -> int:
    """The exit status that says what came of the run."""
    if run.verdict == "failed":
        failure = run.failure
        never_began = failure is not None and failure.kind == "input" and failure.type == "BadInput" and not run.frames
        return BAD_USAGE if never_began else FAILED
    rejected = any(violation.severity == "reject" for violation in run.violations)
    return FAILED if rejected and run.target.strict else 0


def _report(run: Run, *, as_json: bool, folder: Path) -> None:
    with printing():
        if as_json:
            from idbg.reports import json

            sys.stdout.buffer.write(json.encode(json.run_report(run)) + b"\n")
            return
        from idbg.reports import text

        print(text.render(text.run_report(run)))
    print(f"session: {folder}", file=sys.stderr)


def _stop(session: Session, progress: Progress) -> None:
    """Let the run end by itself; a second signal leaves that to `close`, which kills."""
    progress.clear()
    print("idbg: stopping", file=sys.stderr)
    try:
        session.cancel()
        session.wait()
    except Stopped:
        pass


@contextmanager
def _signals() -> Iterator[None]:
    """Ctrl+C, SIGTERM and SIGHUP raise Stopped while this lasts."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        heard.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    except Stopped as stopped:
        raise SystemExit(stopped.status) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
