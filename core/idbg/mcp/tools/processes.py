"""List the processes of a session: what each compiled, and how it ended."""

from idbg.format.amounts import counted
from idbg.mcp import tools
from idbg.mcp.command import Done
from idbg.mcp.where import AllowedSessions

ABOUT = (
    "List the processes of a saved session beside its main one (children of the program, ranks of a job): what each "
    "compiled, and how it ended. The other tools take SESSION/NAME for one of them. Nothing is run."
)
RUNS = False
_KEYS = ("name", "rank", "host", "pid", "said", "verdict", "backend", "graphs", "kernels", "breaks", "state")


class Arguments(tools.Arguments, frozen=True, kw_only=True):
    """The session and the page."""

    session: tools.Session = "last"
    limit: tools.Count = 20
    skip: tools.From = 0


def argv(arguments: Arguments, allowed: AllowedSessions) -> list[str]:
    """`idbg show`."""
    return ["show", allowed.session(arguments.session)]


def summarize(arguments: Arguments, done: Done) -> tools.Result:
    """A page of the processes."""
    known = done.report.get("processes") or []
    some, more = tools.page(known, arguments.skip, arguments.limit)
    rows = []
    for each in some:
        failure = (each.get("ended") or {}).get("failure")
        rows.append({key: each.get(key) for key in _KEYS} | ({"failure": failure} if failure else {}))
    if not known:
        more = "the session has one process, which the other tools show"
    return tools.Result(counted(len(known), "process"), {"processes": rows}, more)
