"""Why did the compiler do what it did?"""

from typing import Annotated, Literal

import msgspec

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import Where
from idbg.schema.errors import BadInput

ABOUT = (
    "Tell why the compiler did what it did in a saved session: graph breaks, recompiles and the guards that failed, "
    "what was fused or not, where the time went, caches, passes, CUDA graphs, autotuning. Or, of two nodes or kernels, "
    "why they are not one kernel. Nothing is run."
)
RUNS = False
Kind = Literal[
    "autotune",
    "breaks",
    "cache",
    "constraints",
    "cuda_graphs",
    "frames",
    "fusion",
    "graphs",
    "guards",
    "passes",
    "recompiles",
    "summary",
    "time",
]


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """Of which session which kinds of them."""

    session: tools.Session = "last"
    kinds: Annotated[tuple[Kind, ...], msgspec.Meta(min_length=1, max_length=13)] = ("summary",)
    pair: Annotated[
        tuple[str, ...], msgspec.Meta(max_length=2, description="Two nodes or kernels: why are they not one kernel?")
    ] = ()


def argv(asked: Arguments, where: Where) -> list[str]:
    """Those kinds, or the pair. Raises BadInput for half a pair."""
    if len(asked.pair) == 1:
        raise BadInput(f"pair has one name, {asked.pair[0]!r}: it takes two", hint="the tool graph tells a node alone")
    line = ["analyze", where.session(asked.session)]
    if asked.pair:
        one, other = asked.pair
        return [*line, "--nodes", tools.plain(one), tools.plain(other)]
    return line + [f"--type={kind}" for kind in asked.kinds]


def tell(asked: Arguments, done: Done) -> tools.Told:
    """All that it told."""
    facts = {name: value for name, value in done.told.items() if name != "schema"}
    said = f"{' and '.join(asked.pair)}" if asked.pair else ", ".join(asked.kinds)
    return tools.Told(f"{said} of {asked.session}", facts, "one kind at a time has the most room")
