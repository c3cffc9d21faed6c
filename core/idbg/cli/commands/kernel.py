"""Print the generated source of a kernel of a saved session."""

import argparse

from idbg.cli import exits, output, sessions, tables

HELP = "print a kernel's source from a saved session, or list its kernels"
EXAMPLES = (
    ("idbg kernel last", "the kernels of the newest session"),
    ("idbg kernel last cpp_fused_relu_0", "the code of one, by its name or a unique part of it"),
    ("idbg kernel last cpp_fused_relu_0 --json", "the same as JSON, with the nodes that it computes"),
)
EXITS = {exits.DONE: "the source was printed"}
SEE = ("graph", "analyze", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sessions.add_session(parser)
    parser.add_argument("name", metavar="KERNEL", nargs="?", default="", help="its name, or a launch's handle")
    sessions.add_run(parser)
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.views import kernel_source

    found = kernel_source.kernel_source(sessions.run_of(args), args.name)
    output.report(
        lambda: found,
        lambda: (
            "\n".join(kernel_source.source_lines(found))
            if found.kernel is not None
            else tables.text(kernel_source.view(found), args.sort)
        ),
    )
    return exits.DONE
