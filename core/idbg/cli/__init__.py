"""The command line `idbg`. Each module in `commands/` is one command: see `verbs.CliCommand`.

Nothing here may import torch. Only the command that was typed is imported.
"""

import contextlib
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from idbg.cli import color, exits, parsing, streams
from idbg.config.command_line import split as split

if TYPE_CHECKING:
    from idbg.schema.programs import Failure

_BUG_HINT = "this is a bug of idbg: please report it, with the lines above"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `idbg`. Returns a status of `exits.TABLE`. Raises SystemExit for --help and for bad usage."""
    streams.prepare()
    answer_completion("idbg")
    ours, programs = split(sys.argv[1:] if argv is None else argv)
    try:
        with _no_collection():
            args = parsing.parsed(ours)
    except parsing.HelpRequested as request:
        raise SystemExit(streams.print_page(request.text)) from None
    except parsing.UsageProblem as problem:
        raise SystemExit(_refused(problem, ours)) from None
    return _run(args, programs)


def answer_completion(program: str) -> None:
    """Where a shell asks for completions: answer, and exit."""
    if "_ARGCOMPLETE" in os.environ:
        from idbg.cli import completions

        completions.answer(program)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Importing modules makes no garbage, and collecting takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _run(args: Namespace, programs: tuple[str, ...]) -> int:
    """Run the command, and turn each exception into a status."""
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
        return _failed(error.failure(), exits.BAD_USAGE if isinstance(error, BadInput) else exits.FAILED)
    except KeyboardInterrupt:
        return _ended(exits.SIGNALLED + 2)
    except SystemExit as ended:
        return _ended(ended.code if isinstance(ended.code, int) else exits.FAILED)
    except BrokenPipeError:
        raise
    # Broad on purpose: the border of the program. A bug of ours has its own status, and a JSON object with --json.
    except Exception as error:
        from idbg.config import places

        try:
            places.check_here()
        except BadInput as no_folder:
            return _failed(no_folder.failure(), exits.BAD_USAGE)
        import traceback

        output.line(traceback.format_exc().rstrip())
        message = f"{type(error).__name__}: {error}"
        return _failed(Failure(kind="idbg", type="Bug", message=message, hint=_BUG_HINT), exits.BUG)


def _failed(failure: "Failure", status: int) -> int:
    """Write why there is no report: to stderr, and with --json as JSON to stdout."""
    from idbg.cli import output

    output.fault(failure.message, failure.hint)
    output.say_error(failure, status)
    return status


def _ended(status: int) -> int:
    """A signal, or the exit of a script, ended the command."""
    from idbg.cli import output
    from idbg.schema.programs import Failure

    if status > exits.SIGNALLED:
        output.say_error(Failure(kind="cancelled", type="Stopped", message="stopped by a signal"), status)
    return status


def _refused(problem: parsing.UsageProblem, ours: Sequence[str]) -> int:
    """The command line cannot be parsed."""
    from idbg.cli import output
    from idbg.schema.programs import Failure

    output.begin(as_json="--json" in ours, when=color.requested(ours))
    failure = Failure(kind="input", type="Usage", message=problem.message, hint=problem.hint)
    return _failed(failure, exits.BAD_USAGE)
