"""The events of the compiler's decisions, part of a session's."""

from idbg.schema.decisions.caches import Autotuned, CacheAnswer, CudaGraph
from idbg.schema.decisions.dynamo import BreakAgain, FrameCalls, FrameGuards, FrameResult, Skip
from idbg.schema.decisions.fusion import FusionLog
from idbg.schema.decisions.passes import PhaseRun
from idbg.schema.decisions.switches import Switch
from idbg.schema.decisions.times import Span
from idbg.schema.event import Event
from idbg.schema.graphs import Part


class FrameDone(Event, frozen=True, kw_only=True, tag="frame_done"):
    """A compile of a frame came to its end, well or not."""

    run: int
    result: FrameResult


class FrameSkipped(Event, frozen=True, kw_only=True, tag="frame_skipped"):
    """Dynamo skipped a function; recorded once for each function and reason."""

    run: int
    skip: Skip


class SkipsDropped(Event, frozen=True, kw_only=True, tag="skips_dropped"):
    """How many more functions were skipped than are recorded."""

    run: int
    count: int


class BrokeAgain(Event, frozen=True, kw_only=True, tag="broke_again"):
    """A graph broke where and why another did before."""

    run: int
    again: BreakAgain


class GuardsCaptured(Event, frozen=True, kw_only=True, tag="guards_captured"):
    """The guards of a compiled frame, and what they cost."""

    run: int
    guards: FrameGuards


class CallsTimed(Event, frozen=True, kw_only=True, tag="calls_timed"):
    """How the calls of a run's compiled frames went; recorded at its end."""

    run: int
    calls: tuple[FrameCalls, ...]


class SpansRecorded(Event, frozen=True, kw_only=True, tag="spans_told"):
    """What began or ended since the last such event."""

    run: int
    spans: tuple[Span, ...]


class PassesRan(Event, frozen=True, kw_only=True, tag="passes_ran"):
    """Phases of passes over the graphs of a frame, as they ended; none comes of passes that did not run."""

    run: int
    frame: str
    phases: tuple[PhaseRun, ...]


class FusionDecided(Event, frozen=True, kw_only=True, tag="fusion_decided"):
    """What Inductor's scheduler decided of one graph; none comes where the graph was found in a cache."""

    run: int
    frame: str
    part: Part
    fusion: FusionLog


class CacheAnswered(Event, frozen=True, kw_only=True, tag="cache_answered"):
    """What a cache answered while a frame was compiled."""

    run: int
    frame: str
    answer: CacheAnswer


class CudaGraphDecided(Event, frozen=True, kw_only=True, tag="cuda_graph_decided"):
    """Whether calls of a frame became a CUDA graph."""

    run: int
    frame: str
    graph: CudaGraph


class Autotuning(Event, frozen=True, kw_only=True, tag="autotuning"):
    """Candidates were measured, or were known, and one was chosen."""

    run: int
    frame: str
    tuned: Autotuned


class SwitchesListed(Event, frozen=True, kw_only=True, tag="switches_listed"):
    """The settings that can be flipped, as the worker's torch has them."""

    switches: tuple[Switch, ...]


DECISION = (
    FrameDone
    | FrameSkipped
    | SkipsDropped
    | BrokeAgain
    | GuardsCaptured
    | CallsTimed
    | SpansRecorded
    | PassesRan
    | FusionDecided
    | CacheAnswered
    | CudaGraphDecided
    | Autotuning
)
"""Those of a run."""
