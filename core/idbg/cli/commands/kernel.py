"""Print the generated source of a kernel of a saved session, and try an edited one in its place."""

import argparse
from pathlib import Path

from idbg.cli import exits, output, sessions, tables
from idbg.config import places
from idbg.schema.errors import BadInput, output_errors
from idbg.whole_file import read_whole, write_whole

HELP = "print a kernel's source from a saved session, or try an edited one; list its kernels"
ABOUT = """\
Print the generated source of a kernel of a saved session, with the edited versions that were tried in its place.
Without a name, list the kernels.

With --edit the session's program runs again: the file is built and run in place of the kernel, in the same compiled
program. Its numbers are compared with the original's and with float64, and it is timed against the original. The
version is kept in the session.
"""
EXAMPLES = (
    ("idbg kernel last", "the kernels of the newest session"),
    ("idbg kernel last cpp_fused_relu_0", "the code of one, by its name or a unique part of it, and its versions"),
    ("idbg kernel last cpp_fused_relu_0 --json", "the same as JSON, with the nodes that it computes"),
    ("idbg kernel last cpp_fused_relu_0 --write relu.cpp", "its source as a file, to edit"),
    ("idbg kernel last cpp_fused_relu_0 --edit relu.cpp", "build the edited file and run it in place of the kernel"),
)
EXITS = {
    exits.DONE: "the source was printed, or the numbers of the edited kernel agree",
    exits.FAILED: "the edited kernel does not build, does not run, or its numbers are wrong",
    exits.UNDECIDED: "the numbers of the edited kernel could not be compared",
}
SEE = ("graph", "analyze", "bench")
_STATUS = {"agrees": exits.DONE, "not compared": exits.UNDECIDED}
_LARGEST = 4 << 20  # bytes of a source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sessions.add_session(parser)
    parser.add_argument("name", metavar="KERNEL", nargs="?", default="", help="its name, or a launch's handle")
    sessions.add_run(parser)
    tables.add_sort(parser)
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--edit", metavar="FILE", help="build this source, and run it in place of the kernel")
    does.add_argument("--write", metavar="FILE", help="write the kernel's source to a file, to edit it")
    parser.add_argument("--version", metavar="N", type=int, help="the Nth version that was tried, not the original")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    if (args.edit or args.write or args.version) and not args.name:
        raise BadInput("no kernel is named", hint=f"idbg kernel {args.session} lists the kernels")
    if args.edit is not None:
        return _edit(args)
    from idbg.views import kernel_edits, kernel_source

    shown = sessions.run_of(args)
    found = kernel_source.kernel_source(shown, args.name, args.version)
    if args.write is not None:
        return _write(Path(args.write), found.source)

    def text() -> str:
        if found.kernel is None:
            return tables.text(kernel_source.view(found), args.sort)
        lines = [*kernel_source.source_lines(found)]
        if found.versions:
            key = found.kernel.frame, found.kernel.part, found.kernel.name
            lines += ["", tables.text(kernel_edits.view(shown, key), args.sort)]
        return "\n".join(lines)

    output.report(lambda: found, text)
    return exits.DONE


def _write(path: Path, source: str) -> int:
    if not source:
        raise BadInput("an extern op has no source of its own", hint="write that of a generated kernel")
    with output_errors(f"cannot write {path}", "name another file"):
        write_whole(path, source.encode())
    output.note(f"written: {path}")
    return exits.DONE


def _edit(args: argparse.Namespace) -> int:
    """Try the file in place of the kernel. Raises BadInput where it cannot be tried, OutputError where the session
    cannot be added to.
    """
    from idbg.cli.one_run import resumed_session
    from idbg.config.arguments import check_program
    from idbg.views import kernel_edits, kernel_source

    text = _text(Path(args.edit))
    folder = sessions.find(args.session, args.output)
    with resumed_session(folder) as session:
        edited = sessions.numbered(session.history, args.run, folder.name)
        kernel = kernel_source.named(edited, args.name)
        check_program(edited.program)
        session.edit_kernel(edited.number, kernel, text)
        session.wait()
        edited = session.history.runs[edited.number]
        last = edited.edits_of(*kernel.key)[-1]
    output.report(
        lambda: kernel_edits.edit_report(edited, last, args.edit),
        lambda: "\n".join(kernel_edits.edit_lines(last, args.edit)),
    )
    output.session(folder)
    return _STATUS.get(last.verdict, exits.FAILED)


def _text(path: Path) -> str:
    path = places.expanded(str(path))
    try:
        return read_whole(path, _LARGEST).decode()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}", hint="name the edited file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text", hint="name the edited source") from error
