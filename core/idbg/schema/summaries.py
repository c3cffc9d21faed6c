"""The summary of a saved session, for one line of a list."""

import msgspec

from idbg.schema.programs import Verdict

NO_RUN = "no run"
"""The result of a session in which nothing ran, and nothing was measured."""


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a list of them shows it. Target and counts are those of its last run, as on the screen; the verdict
    too, but for wrong numbers of an earlier run or a benchmark, which nobody has compared again (`History.verdict`).

    `folder` is absolute and `name` its last part; `program` is as the user names it; `started` is in seconds since the
    epoch, `seconds` lie between its first event and its last. `live`: a process has it open now; `ended`: none has, and
    each run came to its end. `verdict` is "waiting" where that is not known, `looks` the one whose sign and colour it
    is shown with, `result` the same in words ("17 violations"). `bytes` is all that lies in its folder. `damaged` says
    in a sentence what of it cannot be read, "" where all can: the rest is of what stands before that. `version` is
    that of the idbg that wrote it. `processes` beside the main one compiled too, each with a log of its own.
    """

    folder: str
    name: str
    program: str = ""
    backend: str = ""
    accelerator: str = ""
    device: str = ""
    started: float = 0.0
    live: bool = False
    ended: bool = False
    seconds: float = 0.0
    runs: int = 0
    verdict: Verdict = "waiting"
    looks: Verdict = "waiting"
    result: str = msgspec.field(default=NO_RUN, name="said")
    graphs: int = 0
    kernels: int = 0
    violations: int | None = 0
    breaks: int | None = 0
    bytes: int = 0
    damaged: str = ""
    version: str = ""
    processes: int = 0
