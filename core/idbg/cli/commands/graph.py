"""Show a part of a saved session's graph: a node with its neighbours, or a module."""

import argparse
from typing import get_args

from idbg.cli import exits, output, parsing, sessions, tables
from idbg.schema.errors import BadInput
from idbg.schema.graphs import Stage

HELP = "show a part of a saved session's graph: a node with its neighbours, or a module"
ABOUT = """\
Show a part of a graph of a saved session's last run: a node with its inputs and users, or a module of the program. Each
node with its value, its line of the program, its kernels and the rules that it breaks. Without a node or a module: the
list of graphs and modules.
"""
EXAMPLES = (
    ("idbg graph last", "the graphs of the newest session"),
    ("idbg graph last relu_1 --depth 2", "a node, and everything up to two steps from it"),
    ("idbg graph last --module layer1.0 --stage dynamo --json", "a module, as Dynamo captured it, as JSON"),
)
EXITS = {exits.DONE: "the graph was shown"}
SEE = ("kernel", "analyze", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sessions.add_session(parser)
    parser.add_argument("node", metavar="NODE", nargs="?", help="a node's name")
    parser.add_argument("--depth", metavar="N", type=int, default=1, help="so many steps around the node (1)")
    parser.add_argument("--module", metavar="PATH", help="the nodes of this module, and of its submodules")
    parser.add_argument("--stage", choices=get_args(Stage), help="in this graph (inference or forward, else dynamo)")
    parser.add_argument("--frame", metavar="ID", default="", help="of this compiled frame, as 0/0 (the first)")
    sessions.add_run(parser)
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.views import graph_slice

    if args.node and args.module:
        raise BadInput("both a node and a module are named", hint="name one of them")
    parsing.check_least(args, depth=0)
    if args.depth > 20:
        raise BadInput(f"--depth is {args.depth}", hint="give a number from 0 to 20")
    done = sessions.run_of(args)
    if args.module:
        found = graph_slice.within(done, args.module, args.stage, args.frame)
    elif args.node:
        found = graph_slice.around(done, args.node, args.depth, args.stage, args.frame)
    else:
        found = graph_slice.overview(done)
    output.report(lambda: found, lambda: tables.text(graph_slice.view(found), args.sort))
    return exits.DONE
