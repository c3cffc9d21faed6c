"""What stands around a node, or in a module, of a saved session's graph?"""

import argparse
from typing import get_args

from idbg.cli import exits, output, sessions
from idbg.schema.graphs import Stage

HELP = "tell a part of a saved session's graph: a node with what is around it, or a module"
ABOUT = """\
Tell a part of a graph of a saved session's last run: a node with what feeds it and what uses it, or a module of the
program's. Each node with its value, its line of the program, its kernels and the rules that it breaks. With neither
named: which graphs there are, and which modules.
"""
EXAMPLES = (
    ("idbg graph last", "which graphs the newest session has"),
    ("idbg graph last relu_1 --depth 2", "what is up to two steps from a node"),
    ("idbg graph last --module layer1.0 --stage dynamo --json", "a module, as Dynamo captured it, as JSON"),
)
EXITS = {exits.DONE: "it was told"}
SEE = ("kernel", "analyze", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which session which part is told."""
    parser.add_argument("session", metavar="SESSION", help=sessions.SESSION)
    parser.add_argument("node", metavar="NODE", nargs="?", help="a node's name")
    parser.add_argument("--depth", metavar="N", type=int, default=1, help="so many steps around the node (1)")
    parser.add_argument("--module", metavar="PATH", help="the nodes of this module, and of those inside it")
    parser.add_argument("--stage", choices=get_args(Stage), help="in this graph (inference or forward, else dynamo)")
    parser.add_argument("--frame", metavar="ID", default="", help="of this compiled frame, as 0/0 (the first)")
    sessions.add_run(parser)
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Read it and tell; 0. Raises BadInput where nothing of that name is there."""
    from idbg.reports import graph_slice
    from idbg.schema.errors import BadInput

    if args.node and args.module:
        raise BadInput("a node and a module are named", hint="name one of them")
    if not 0 <= args.depth <= 20:
        raise BadInput(f"--depth {args.depth}: this many steps are not told", hint="0 to 20")
    done = sessions.run_of(args)
    if args.module:
        told = graph_slice.within(done, args.module, args.stage, args.frame)
    elif args.node:
        told = graph_slice.around(done, args.node, args.depth, args.stage, args.frame)
    else:
        told = graph_slice.overview(done)
    if args.json:
        output.say_json(told)
    else:
        output.say("\n".join(graph_slice.text(told)))
    return exits.DONE
