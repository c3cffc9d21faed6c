"""Print what another compiler made of a graph at one of its stages, from a saved session."""

import argparse

from idbg.cli import exits, output, sessions, tables

HELP = "print a stage of another compiler (IREE, OpenVINO, ...) from a saved session; list them"
ABOUT = """\
Print what another compiler made of a graph at one of its stages, as a saved session has it, each line with the nodes
that it belongs to. Without a name, list the stages.
"""
EXAMPLES = (
    ("idbg stage last", "the stages of the newest session"),
    ("idbg stage last flow", "IREE's phase flow, with the node of each line"),
    ("idbg stage last 'after transformations' --json", "the model that OpenVINO runs, as JSON"),
)
EXITS = {exits.DONE: "the stage was printed, or the stages were listed"}
SEE = ("kernel", "graph", "analyze")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sessions.add_session(parser)
    parser.add_argument("name", metavar="STAGE", nargs="?", default="", help="its name, or a unique part of it")
    sessions.add_run(parser)
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.session.stage_texts import text_of
    from idbg.views import stages

    shown = sessions.run_of(args)
    if not args.name:
        output.report(lambda: stages.listing(shown), lambda: tables.text(stages.view(shown), args.sort))
        return exits.DONE
    stage = stages.named(shown, args.name)
    text, note = text_of(stage, sessions.find(args.session, args.output).absolute())
    output.report(
        lambda: stages.listing(shown, stage, text, note), lambda: "\n".join(stages.text_lines(stage, text, note))
    )
    return exits.DONE
