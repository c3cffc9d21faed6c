"""Compare the ranks of a distributed job."""

from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "Compare the ranks of a distributed job in a saved session: which one waits for whom in which collective, which "
    "one failed, and in what graphs, guards, kernels, collectives or compile times they differ, with the user's line. "
    "Nothing is run."
)
RUNS = False
_KEYS = ("level", "kind", "sentence", "place")


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session and the page."""

    session: tools.Session = "last"
    limit: tools.Count = 20
    skip: tools.From = 0


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg analyze --type ranks`."""
    return ["analyze", allowed.session(arguments.session), "--type=ranks"]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """The differences, the worst first, and the groups of equal ranks."""
    found = done.report["ranks"]
    some, more = tools.page(found["differences"], arguments.skip, arguments.limit)
    rows = [{key: each[key] for key in _KEYS} for each in some]
    facts: dict[str, object] = {"differences": rows, "groups": found["groups"], "unseen": found["unseen"]}
    return tools.Result(found["summary"], facts, more or "the tools take SESSION/rank3 for one of them")
