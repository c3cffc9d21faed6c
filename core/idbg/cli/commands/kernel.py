"""Which code did the compiler write for a kernel of a saved session?"""

import argparse

from idbg.cli import exits, output, sessions

HELP = "print a kernel's source from a saved session, or list its kernels"
EXAMPLES = (
    ("idbg kernel last", "the kernels of the newest session"),
    ("idbg kernel last cpp_fused_relu_0", "the code of one, by its name or a part that no other has"),
    ("idbg kernel last cpp_fused_relu_0 --json", "the same as JSON, with the nodes that it computes"),
)
EXITS = {exits.DONE: "it was told"}
SEE = ("graph", "analyze", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which session which kernel is told."""
    parser.add_argument("session", metavar="SESSION", help=sessions.SESSION)
    parser.add_argument("name", metavar="KERNEL", nargs="?", default="", help="its name, or a launch's handle")
    sessions.add_run(parser)
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Read it and tell; 0. Raises BadInput where there is no such kernel."""
    from idbg.reports import kernel_source

    told = kernel_source.kernel_source(sessions.run_of(args), args.name)
    if args.json:
        output.say_json(told)
    else:
        output.say("\n".join(kernel_source.text(told)))
    return exits.DONE
