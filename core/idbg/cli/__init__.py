"""Which command did the user type? Each module in `commands/` is one: `HELP`, `add_arguments`, `run`.

Nothing here may import torch, and what `idbg --help` needs must load in 0.3 s.
"""

import argparse
import contextlib
import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Protocol, cast

import idbg
from idbg.cli import commands as rooms
from idbg.config.arguments import split
from idbg.schema.errors import BadInput, IdbgError

FAILED, BAD_USAGE = 1, 2


class CliCommand(Protocol):
    """A module of `cli/commands`: its file's name is what the user types."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say what its command line is."""

    def run(self, args: argparse.Namespace, argv: tuple[str, ...]) -> int:
        """Do it, and give the exit status. `argv` is what stood after `--`."""


def commands() -> dict[str, CliCommand]:
    """Every command by its name."""
    names = sorted(module.name for module in pkgutil.iter_modules(rooms.__path__))
    return {name.replace("_", "-"): cast("CliCommand", import_module(f"{rooms.__name__}.{name}")) for name in names}


def main(argv: Sequence[str] | None = None) -> int:
    """`idbg`: 0 clean, 1 strictly rejected, failed or nothing compiled, 2 bad usage, 128 + N ended by signal N."""
    ours, programs = split(sys.argv[1:] if argv is None else argv)
    args = _parser().parse_args(ours)
    command: CliCommand = args.command
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 still gets its report
    try:
        status = command.run(args, programs)
        with printing():
            pass
    except BrokenPipeError:
        return _quiet()
    except IdbgError as error:
        print(f"idbg: {error}", file=sys.stderr)
        return BAD_USAGE if isinstance(error, BadInput) else FAILED
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="idbg", description="Debug torch.compile without a screen; idbg-tui has one.")
    parser.add_argument("--version", action="version", version=f"idbg {idbg.__version__}")
    parser.set_defaults(command=None)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in commands().items():
        sub = subparsers.add_parser(
            name, help=command.HELP, description=command.HELP[:1].upper() + command.HELP[1:] + "."
        )
        command.add_arguments(sub)
        sub.set_defaults(command=command)
    return parser


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """While this lasts, our output is written, all of it. Raises IdbgError if stdout cannot take it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _quiet()
        raise IdbgError(
            f"cannot write to stdout: {error.strerror or error}", hint="send it where there is room, and do it again"
        ) from error


def _quiet() -> int:
    """Nobody takes our output: say nothing more there, also not when Python flushes at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13
