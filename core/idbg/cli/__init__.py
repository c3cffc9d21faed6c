"""Which command did the user type? Each module in `commands/` is one: see `verbs.CliCommand`.

Nothing here may import torch; only the command that was typed is imported.
"""

import contextlib
import gc
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from idbg.cli import color, exits, parsing, streams
from idbg.cli.exits import BAD_USAGE as BAD_USAGE
from idbg.cli.exits import FAILED as FAILED
from idbg.config.command_line import split as split

if TYPE_CHECKING:
    from idbg.cli.output import printing as printing
    from idbg.schema.programs import Failure

A_BUG = "this is a defect of idbg's: please report it, with the lines above"


def __getattr__(name: str) -> object:
    if name == "printing":  # what it needs is not loaded for --help
        from idbg.cli.output import printing

        return printing
    raise AttributeError(name)


def main(argv: Sequence[str] | None = None) -> int:
    """`idbg`: what a status says stands in `exits.TABLE`. Raises SystemExit for --help, and for bad usage."""
    streams.hold()
    ours, programs = split(sys.argv[1:] if argv is None else argv)
    try:
        with no_collection():
            args = parsing.parsed(ours)
    except parsing.HelpAsked as asked:
        raise SystemExit(streams.printed(asked.text)) from None
    except parsing.UsageProblem as problem:
        raise SystemExit(_refused(problem, ours)) from None
    return _done(args, programs)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """While modules are imported there is nothing to collect, and to look for it takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _done(args: Namespace, programs: tuple[str, ...]) -> int:
    """Run the command; whatever becomes of it is a status."""
    from idbg.cli import output

    output.begin(as_json=args.json, verbose=args.verbose, quiet=args.quiet, when=args.color)
    try:
        return _status(args, programs)
    except BrokenPipeError:
        streams.silence()
        return exits.SIGNALLED + 13


def _status(args: Namespace, programs: tuple[str, ...]) -> int:
    from idbg.cli import output
    from idbg.schema.errors import BadInput, IdbgError
    from idbg.schema.programs import Failure

    try:
        status: int = args.command.run(args, programs)
        with output.printing():
            pass
        return status or (exits.FAILED if output.has_lost_session() else exits.DONE)
    except IdbgError as error:
        return _failed(error.failure(), BAD_USAGE if isinstance(error, BadInput) else FAILED)
    except KeyboardInterrupt:
        return _ended(exits.SIGNALLED + 2)
    except SystemExit as ended:
        return _ended(ended.code if isinstance(ended.code, int) else FAILED)
    except BrokenPipeError:
        raise
    # Broad on purpose: the program's border. A defect of ours has a status of its own, and with --json its object.
    except Exception as error:
        from idbg.config import places

        try:
            places.check_here()
        except BadInput as gone:
            return _failed(gone.failure(), BAD_USAGE)
        import traceback

        output.line(traceback.format_exc().rstrip())
        words = f"{type(error).__name__}: {error}"
        return _failed(Failure(kind="idbg", type="Bug", message=words, hint=A_BUG), exits.BUG)


def _failed(failure: "Failure", status: int) -> int:
    """Say why there is no report: in words on stderr, and with --json as JSON on stdout."""
    from idbg.cli import output

    output.fault(failure.message, failure.hint)
    output.say_error(failure, status)
    return status


def _ended(status: int) -> int:
    """A signal ended it, or a script's own exit."""
    from idbg.cli import output
    from idbg.schema.programs import Failure

    if status > exits.SIGNALLED:
        output.say_error(Failure(kind="cancelled", type="Stopped", message="stopped by a signal"), status)
    return status


def _refused(problem: parsing.UsageProblem, ours: Sequence[str]) -> int:
    """A command line that is none of ours."""
    from idbg.cli import output
    from idbg.schema.programs import Failure

    output.begin(as_json="--json" in ours, when=color.asked(ours))
    return _failed(Failure(kind="input", type="Usage", message=problem.message, hint=problem.hint), BAD_USAGE)
