"""Report why the compiler did what it did."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions
from idbg.reports.decisions import TYPES
from idbg.schema.errors import BadInput

ABOUT = (
    "Report why the compiler did what it did in a saved session: graph breaks, recompiles and the guards that failed, "
    "what was fused or not, where the time went, caches, passes, CUDA graphs, autotuning. Or why two nodes or kernels "
    "were not fused. Nothing is run."
)
RUNS = False
if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(TYPES)]


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session and the kinds of decisions."""

    session: tools.Session = "last"
    kinds: Annotated[tuple[Kind, ...], msgspec.Meta(min_length=1, max_length=len(TYPES))] = ("summary",)
    pair: Annotated[
        tuple[str, ...], msgspec.Meta(max_length=2, description="Two nodes or kernels: why were they not fused?")
    ] = ()


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg analyze`. Raises BadInput for half a pair."""
    if len(arguments.pair) == 1:
        raise BadInput(
            f"pair has one name, {arguments.pair[0]!r}: it needs two", hint="the tool graph shows a single node"
        )
    line = ["analyze", allowed.session(arguments.session)]
    if arguments.pair:
        one, other = arguments.pair
        return [*line, "--nodes", tools.plain(one), tools.plain(other)]
    return line + [f"--type={kind}" for kind in arguments.kinds]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The whole report."""
    facts = {name: value for name, value in done.report.items() if name not in ("schema", "refs")}
    summary = f"{' and '.join(arguments.pair)}" if arguments.pair else ", ".join(arguments.kinds)
    return tools.Result(f"{summary} of {arguments.session}", facts, "ask for one kind to get more of it")
