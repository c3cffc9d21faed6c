"""The options of torch's launcher, and the command lines that start the ranks of a job."""

import argparse
import shutil
import sys
from importlib.util import find_spec
from typing import NamedTuple

from idbg.config.arguments import parse_program
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program

_OPTIONS = {
    "nnodes": ("N", "hosts of the job, or MIN:MAX"),
    "node-rank": ("N", "the number of this host, from 0"),
    "rdzv-backend": ("NAME", "how the hosts find each other: c10d, static, ..."),
    "rdzv-endpoint": ("TEXT", "where they do: HOST:PORT"),
    "rdzv-id": ("ID", "the id of the job"),
    "rdzv-conf": ("TEXT", "more of it: KEY=VALUE,..."),
    "master-addr": ("NAME", "the host of rank 0, for the backend static"),
    "master-port": ("N", "its port"),
    "max-restarts": ("N", "how often a job that failed is started again"),
}
"""Of torch.distributed.run, without --nproc-per-node."""
_OF_ONE_PROCESS = (
    *("backend", "accelerator", "strict", "device", "mode", "stance", "dynamic", "dynamic_sources", "cold"),
    *("option", "setting", "fail_on", "baseline", "update_baseline"),
)
"""Options that a job cannot have: its ranks compile as the script says."""
_OF_ONE_COMPARISON = ("per_kernel", "nan", "sync", "owner", "steps", "backward")
"""Likewise of `idbg diff`: each graph is compared at its first call, as the program compiled it."""
_NAMED = ("gpu", "cpu", "xpu", "auto")  # numbers of processes that torch finds out
_LEAVE_OUT = "leave --nproc-per-node out to run it as one process"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--nproc-per-node, and the other options that are passed on to torch's launcher."""
    group = parser.add_argument_group("ranks, started by torch.distributed.run")
    group.add_argument(
        "--nproc-per-node",
        metavar="N",
        help="start N ranks of the script on this host, each captured as a process of the session; "
        "or gpu, cpu, auto, as torchrun has them",
    )
    for name, (metavar, words) in _OPTIONS.items():
        group.add_argument(f"--{name}", metavar=metavar, help=words)
    group.add_argument(
        "--session", metavar="FOLDER", help="the session's folder, also of a job that other hosts have begun there"
    )


def is_requested(args: argparse.Namespace) -> bool:
    """Whether ranks are to be started. Raises BadInput for an option of theirs alone."""
    given = [f"--{name}" for name in (*_OPTIONS, "session") if getattr(args, name.replace("-", "_")) is not None]
    if args.nproc_per_node is None and given:
        raise BadInput(f"{given[0]} is of a job of several ranks", hint="add --nproc-per-node N")
    return args.nproc_per_node is not None


class Job(NamedTuple):
    """The command that starts a job, and the program that its ranks run."""

    command: tuple[str, ...]
    program: Program


def job(args: argparse.Namespace, argv: tuple[str, ...], cwd: str) -> Job:
    """The job of a command line: of a program, or, without one, of the command `argv`. Raises BadInput."""
    for name in (*_OF_ONE_PROCESS, *_OF_ONE_COMPARISON):
        if getattr(args, name, None):
            raise BadInput(f"--{name.replace('_', '-')} is of one process", hint="ranks compile as the script says")
    if args.program is None:
        return Job(argv, _wrapped(argv, cwd))
    program = parse_program(args.program, module=args.module, argv=argv, cwd=cwd)
    return Job(_launcher(args, program), program)


def _launcher(args: argparse.Namespace, program: Program) -> tuple[str, ...]:
    """The command that starts the ranks of the program. Raises BadInput for a wrong number, and without torch."""
    number = str(args.nproc_per_node)
    if not (number in _NAMED or (number.isdecimal() and int(number) > 0)):
        raise BadInput(f"--nproc-per-node is {number}", hint=f"write a number from 1 up; {_LEAVE_OUT}")
    if program.name:
        raise BadInput(f"ranks run a script, not the function {program.name}", hint=f"name {program.path} alone")
    if find_spec("torch") is None:
        raise BadInput(f"there is no torch in {sys.executable}, so no launcher", hint="install torch there")
    values = {name: getattr(args, name.replace("-", "_")) for name in _OPTIONS}
    options = [f"--{name}={value}" for name, value in values.items() if value is not None]
    if not any(values[name] for name in values if name != "max-restarts"):
        options.append("--standalone")  # torch chooses a free port: two jobs on one host do not meet
    script = (*(("--module",) if program.module else ()), program.path)
    return (
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nproc-per-node={number}",
        *options,
        *script,
        *program.argv,
    )


def _wrapped(command: tuple[str, ...], cwd: str) -> Program:
    """The program of a command that starts a job: the script in it. Raises BadInput where the command is not there."""
    if shutil.which(command[0]) is None:
        raise BadInput(f"there is no command {command[0]}", hint="write the whole command: idbg run -- torchrun ...")
    at = next((at for at, word in enumerate(command[1:], 1) if word.endswith((".py", ".pyw"))), 0)
    return Program(path=command[at], argv=command[at + 1 :], cwd=cwd)
