"""What must not happen in a run that is watched by a machine (--fail-on), and did it?"""

import argparse
import sys
from collections.abc import Callable, Iterator

from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.reports.decisions.recompiles import of_guard
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run

MOST = 20  # told of each kind


def add_argument(parser: argparse.ArgumentParser) -> None:
    """--fail-on KIND, as often as it is wanted."""
    words = ", ".join(f"{name} ({about})" for name, (about, _) in KINDS.items())
    parser.add_argument(
        "--fail-on",
        choices=list(KINDS),
        action="append",
        default=[],
        help=f"exit with 1 if this happens, and name where: {words}",
    )


def happened(run: Run, kinds: list[str]) -> bool:
    """Whether any of these kinds happened in the run; each place is told on stderr."""
    found = False
    for kind in dict.fromkeys(kinds):
        places = list(KINDS[kind][1](run))
        found = found or bool(places)
        for place in places[:MOST]:
            print(f"idbg: {kind}: {place}", file=sys.stderr)
        if len(places) > MOST:
            print(f"idbg: {kind}: and {counted(len(places) - MOST, 'other')}", file=sys.stderr)
    return found


def _breaks(run: Run) -> Iterator[str]:
    for each in run.breaks:
        yield f"{near_place(each.file, each.line) or 'an unknown line'}: {each.reason.strip().partition(chr(10))[0]}"


def _recompiles(run: Run) -> Iterator[str]:
    for each in run.recompiles:
        frame = run.frames.get(each.frame, Frame(each.frame, "?"))
        why = of_guard(each.failed[0]) if each.failed else each.reason.partition("\n")[0]
        yield f"{near_place(frame.file, frame.line)} {frame.function}: {why}"


KINDS: dict[str, tuple[str, Callable[[Run], Iterator[str]]]] = {
    "break": ("a graph break", _breaks),
    "recompile": ("a frame is compiled again", _recompiles),
}
