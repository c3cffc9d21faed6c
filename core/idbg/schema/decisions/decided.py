"""The compiler's decisions in a run so far, as a fold of their events."""

from dataclasses import dataclass, field

from idbg.schema import events
from idbg.schema.decisions.backends import GraphSplit, SplitCalls
from idbg.schema.decisions.dynamo import BreakAgain, FrameCalls, FrameGuards, FrameResult, Skip
from idbg.schema.decisions.inductor import Autotuned, CacheAnswer, CudaGraph, FusionLog, PhaseRun, Span
from idbg.schema.graphs import Part


@dataclass
class Decided:
    """All that is known of a run's decisions, by the frame that each is about. What is not here was not reported: the
    compiler may have decided it all the same.
    """

    results: dict[str, FrameResult] = field(default_factory=dict)
    skips: list[Skip] = field(default_factory=list)
    skips_dropped: int = 0  # functions left alone beyond those of `skips`
    breaks_again: list[BreakAgain] = field(default_factory=list)  # beside those of Run.breaks
    guards: dict[str, FrameGuards] = field(default_factory=dict)
    calls: dict[str, FrameCalls] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)
    passes: dict[str, list[PhaseRun]] = field(default_factory=dict)
    fusion: dict[tuple[str, Part], FusionLog] = field(default_factory=dict)
    caches: dict[str, list[CacheAnswer]] = field(default_factory=dict)
    cuda_graphs: dict[str, list[CudaGraph]] = field(default_factory=dict)
    autotuned: dict[str, list[Autotuned]] = field(default_factory=dict)
    splits: dict[str, list[GraphSplit]] = field(default_factory=dict)
    split_calls: dict[int, SplitCalls] = field(default_factory=dict)  # by the split's number

    def apply(self, event: events.DECISION) -> None:
        """Take in one event."""
        match event:
            case events.FrameDone():
                self.results[event.result.frame] = event.result
            case events.FrameSkipped():
                self.skips.append(event.skip)
            case events.SkipsDropped():
                self.skips_dropped = event.count
            case events.BrokeAgain():
                self.breaks_again.append(event.again)
            case events.GuardsCaptured():
                self.guards[event.guards.frame] = event.guards
            case events.CallsTimed():
                self.calls.update((each.frame, each) for each in event.calls)
            case events.SpansRecorded():
                self.spans.update((span.id, span) for span in event.spans)
            case events.PassesRan():
                self.passes.setdefault(event.frame, []).extend(event.phases)
            case events.FusionDecided():
                self.fusion[event.frame, event.part] = event.fusion
            case events.CacheAnswered():
                self.caches.setdefault(event.frame, []).append(event.answer)
            case events.CudaGraphDecided():
                self.cuda_graphs.setdefault(event.frame, []).append(event.graph)
            case events.Autotuning():
                self.autotuned.setdefault(event.frame, []).append(event.tuned)
            case events.GraphWasSplit():
                self.splits.setdefault(event.frame, []).append(event.split)
            case events.SplitCalled():
                self.split_calls[event.number] = event.calls

    def forget(self, frame: str) -> None:
        """Drop what was decided of a frame that torch traces anew, but how long it took."""
        for by_frame in (
            self.results,
            self.guards,
            self.passes,
            self.caches,
            self.cuda_graphs,
            self.autotuned,
            self.splits,
        ):
            by_frame.pop(frame, None)
        self.fusion = {key: log for key, log in self.fusion.items() if key[0] != frame}
