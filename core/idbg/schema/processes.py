"""Records of the processes of a session beside its main one: children of the program, and ranks."""

from typing import Literal

import msgspec

from idbg.schema.programs import Verdict

ORDERLY = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals by which a program ends its processes: none says that something is wrong."""
HowCaptured = Literal["idbg", "trace", "import"]


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process with a log of its own in SESSION/processes/`name`. Its ids are those of its `host`, 0 where not known.

    `rank`, `local_rank` and `world_size` are those of torch.distributed, None outside of a job or where not known.
    `command` started it. `how` its log came: "idbg": it captured itself; "trace": read from its torch trace, as it
    cannot import idbg; "import": read from files of an earlier job. `started` in seconds since the epoch. `run` is the
    main process's run that it belongs to, 0 where not known.
    """

    name: str
    pid: int = 0
    parent: int = 0
    host: str = ""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    command: tuple[str, ...] = ()
    how: HowCaptured = "idbg"
    started: float = 0.0
    run: int = 0


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended: `exit_status` is None where a `signal` ("SIGKILL") ended it, or nobody has seen it end.
    `last_phase` is what it compiled at that time, of the frame `last_frame` ("0/0"), "" where nothing. `failure`: the
    exception that ended it, in a line, "" where none is known. `at` in seconds since the epoch.
    """

    exit_status: int | None = None
    signal: str = ""
    last_phase: str = ""
    last_frame: str = ""
    failure: str = ""
    at: float = 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether it ended as no process should: by a signal that is no request to end, or with an exit status."""
        return bool(self.exit_status or (self.signal and self.signal not in ORDERLY))


class ProcessReport(Process, frozen=True, kw_only=True):
    """A process, and how it `ended`: null where it runs, or that is not known. `verdict` is that of its log, in words
    `said`, "" where its log was not read to its end; "failed" where it ended as no process should.
    """

    ended: ProcessEnd | None = None
    verdict: Verdict = "waiting"
    said: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it ended as no process should, as far as that is known."""
        return self.ended is not None and self.ended.is_wrong
