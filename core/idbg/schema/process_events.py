"""Events of the processes and ranks of a session; `events` has all others, and these too."""

import msgspec

from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.decisions.dynamo import Stack
from idbg.schema.event_base import Event, RunEvent
from idbg.schema.node_values import CallValues
from idbg.schema.processes import Process
from idbg.schema.programs import Verdict


class ProcessStarted(Event, frozen=True, kw_only=True, tag="process_started"):
    """A process of the session compiles: its log is in the session's folder `processes`."""

    process: Process


class ProcessEnded(Event, frozen=True, kw_only=True, tag="process_ended"):
    """A process of the session ended. `exit_status` is None where a `signal` ("SIGKILL") ended it, or nobody has seen
    how it ended. `last_phase` is what it compiled at that time, of `last_frame`, "" where nothing. `failure`: the
    exception that ended it, in a line, as far as it is known. `verdict` is that of its log, in words
    `said`: "" where it was not read.
    """

    name: str
    exit_status: int | None = None
    signal: str = ""
    last_phase: str = ""
    last_frame: str = ""
    failure: str = ""
    verdict: Verdict = "waiting"
    said: str = ""


class CollectivesSeen(RunEvent, frozen=True, kw_only=True, tag="collectives_seen"):
    """What torch's flight recorder has since the event before: the collectives that `began`, those that are `pending`
    now, and the main thread's `stack`. Where they are too many to be recorded, `last` has the last of each group, and
    `lost` counts them. Where the recorder is off, `counts` has how many each group began, by its name.
    """

    began: tuple[Collective, ...] = ()
    groups: tuple[ProcessGroup, ...] = ()
    pending: tuple[Collective, ...] = ()
    last: tuple[Collective, ...] = ()
    lost: int = 0
    stack: Stack = ()
    counts: dict[str, int] = msgspec.field(default_factory=dict)


class NodeValuesMeasured(RunEvent, frozen=True, kw_only=True, tag="node_values_measured"):
    """The values of a graph's nodes in one call, in a rank of a job whose numbers are compared."""

    values: CallValues
