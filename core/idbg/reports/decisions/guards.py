"""What does torch check before it uses compiled code, what does that cost, and which check made it compile again?"""

from collections.abc import Iterable, Iterator

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.guards import Failures, by_source, share
from idbg.analysis.decisions.stacks import of_program
from idbg.format import amounts
from idbg.format.amounts import counted, evaluation
from idbg.format.file_names import near_place
from idbg.schema.decisions.decision import Decision
from idbg.schema.decisions.dynamo import FrameGuards, Guard, LeftOut
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run

SOURCES = 5  # of a frame, in text
WHOLE = 20  # frames of which a guard failed, in text
DEAREST = 3  # frames that are told whole as their guards cost most
LINES = 50  # of other frames, in text
NAMES = 4  # of frames, in a line
CODE = 110  # characters of a check, in text
NONE = "no guards: no frame was compiled"
WHOLE_FRAME = "the whole frame"
"""What is said in place of a source where there is none: modes, settings, how tensors overlap."""


def text(run: Run) -> Iterable[str]:
    """Frames where a guard failed, and those whose guards cost most: what failed, and by source what costs most. Then
    the others, those that are alike in one line.
    """
    if not run.decided.guards:
        yield NONE
    failures = Failures(run)
    whole, others = _chosen(run, failures)
    for guards in whole:
        yield f"{_name(run, guards)}   {number(guards)}"
        yield f"  {cost(run, guards)}"
        if guards.left_out:
            yield f"  asked for by Dynamo, and not evaluated by themselves: {left_out(guards)}"
        yield from _failed(guards, failures)
        yield from _sources(guards)
    if others:
        yield f"{counted(len(others), 'other frame')} (--json has all of each)"
        yield from _folded(run, others, failures)


def _chosen(run: Run, failures: Failures) -> tuple[list[FrameGuards], list[FrameGuards]]:
    """Those that are told whole, and the others, both in the order of their compiles."""
    every = list(run.decided.guards.values())
    dearest = sorted(every, key=lambda guards: -(guards.seconds or 0.0))
    failed = [guards for guards in dearest if _has_failed(guards, failures)]
    shown = {guards.frame for guards in (*failed[:WHOLE], *dearest[:DEAREST])}
    return [each for each in every if each.frame in shown], [each for each in every if each.frame not in shown]


def _has_failed(guards: FrameGuards, failures: Failures) -> bool:
    return any(failures.of(guards.frame, guard) for guard in guards.guards)


def _folded(run: Run, others: Iterable[FrameGuards], failures: Failures) -> Iterator[str]:
    """A line for those of one function that have as many checks."""
    alike: dict[tuple[str, str, bool], list[FrameGuards]] = {}
    for guards in others:
        key = _function(run, guards), number(guards), _has_failed(guards, failures)
        alike.setdefault(key, []).append(guards)
    for (function, checks, has_failed), ones in list(alike.items())[:LINES]:
        names = ", ".join(each.frame for each in ones[:NAMES])
        more = f" and {len(ones) - NAMES:,} more" if len(ones) > NAMES else ""
        known = [each.seconds for each in ones if each.seconds is not None]
        took = " to ".join(dict.fromkeys(map(evaluation, (min(known), max(known))))) if known else evaluation(None)
        yield f"  {names}{more} {function}   {checks}, {took}{', one failed' if has_failed else ''}"
    if len(alike) > LINES:
        yield f"  … and {counted(len(alike) - LINES, 'line')} more (--json has all)"


def _function(run: Run, guards: FrameGuards) -> str:
    frame = run.frames.get(guards.frame, Frame(guards.frame, "?"))
    return f"{spoken(frame)}   {near_place(frame.file, frame.line)}".rstrip()


def _name(run: Run, guards: FrameGuards) -> str:
    return f"{guards.frame} {_function(run, guards)}"


def number(guards: FrameGuards) -> str:
    """How many checks are evaluated, and how many guards Dynamo asked for."""
    asked = f", for {counted(guards.asked, 'guard')} that Dynamo asked for" if guards.asked is not None else ""
    return f"{counted(len(guards.guards) + guards.dropped, 'check')}{asked}"


def cost(run: Run, guards: FrameGuards) -> str:
    """What one evaluation takes, and its share of a call; or what was not measured."""
    if guards.seconds is None:
        return "what they cost was not measured: torch did not evaluate them as it compiled, or could not alone"
    cold = f" ({evaluation(guards.cold)} with cold caches)" if guards.cold is not None else ""
    taken = f"all of them take {evaluation(guards.seconds)}{cold}"
    of_call = share(run, guards)
    if of_call is None:
        return f"{taken}; their share of a call is not known: no call of the compiled graph was measured"
    which = "the only call, which was the first" if of_call.first else "the fastest call"
    graph = amounts.duration(of_call.call * 1000)
    return f"{taken}: {amounts.share(of_call.part)} of {which} (its graph took {graph} on this process's side)"


def left_out(guards: FrameGuards) -> str:
    """What Dynamo asked for and is not in the list, by kind, with the reason where there is one."""
    return "; ".join(map(_left_out, guards.left_out))


def _left_out(left: LeftOut) -> str:
    return f"{left.count} {left.kind}" + (f" ({left.why})" if left.why else "")


def _failed(guards: FrameGuards, failures: Failures) -> Iterator[str]:
    for guard in guards.guards:
        if compiles := failures.of(guards.frame, guard):
            yield f"  failed: {words(guard)}   {_place(guard)}".rstrip()
            yield f"    {outcome(compiles)}"


def outcome(compiles: Iterable[str]) -> str:
    """What came of a guard's failing."""
    names = ", ".join(compiles)
    return f"as it failed, torch compiled {names}" if names else "it did not fail in this run"


def _sources(guards: FrameGuards) -> Iterator[str]:
    """The sources whose checks take longest, each with what is checked."""
    groups = sorted(by_source(guards.guards).items(), key=lambda group: -taken(group[1]))
    for source, ones in groups[:SOURCES]:
        kinds = ", ".join(dict.fromkeys(guard.kind for guard in ones))
        place = next(filter(None, map(_place, ones)), "")
        measured = [guard for guard in ones if guard.seconds is not None]
        seconds = evaluation(taken(measured) if measured else None)
        yield f"  {seconds:>12}  {source or WHOLE_FRAME}   {kinds}   {place}".rstrip()
    if len(groups) > SOURCES:
        yield f"  … and {counted(len(groups) - SOURCES, 'source')} more (--json has all)"
    if guards.dropped:
        yield f"  … and {counted(guards.dropped, 'check')} more that were not kept"


def taken(guards: Iterable[Guard]) -> float:
    """Seconds of those that were measured."""
    return sum(guard.seconds or 0.0 for guard in guards)


def words(guard: Guard) -> str:
    """What is checked, in at most CODE characters."""
    code = " and ".join(guard.code) or guard.source or guard.kind
    return code if len(code) <= CODE else f"{code[: CODE - 1]}…"


def _place(guard: Guard) -> str:
    return near_place(guard.file, guard.line) if guard.file else ""


def as_json(run: Run) -> object:
    """Each frame with its guards, their costs in seconds, and the compiles that each caused."""
    failures = Failures(run)
    return [_frame_json(run, guards, failures) for guards in run.decided.guards.values()]


def _frame_json(run: Run, guards: FrameGuards, failures: Failures) -> dict[str, object]:
    of_call = share(run, guards)
    return {
        "frame": guards.frame,
        "seconds": guards.seconds,
        "cold_seconds": guards.cold,
        "call_seconds": of_call.call if of_call else None,
        "call_is_first": of_call.first if of_call else None,
        "share_of_call": of_call.part if of_call else None,
        "asked": guards.asked,
        "left_out": guards.left_out,
        "dropped": guards.dropped,
        "guards": [
            {
                "kind": guard.kind,
                "source": guard.source,
                "code": guard.code,
                "file": guard.file,
                "line": guard.line,
                "stack": of_program(guard.stack),
                "seconds": guard.seconds,
                "caused": failures.of(guards.frame, guard),
            }
            for guard in guards.guards
        ],
    }


def about(run: Run) -> Iterable[Decision]:
    """Each guard that a line of the user's caused."""
    failures = Failures(run)
    for guards in run.decided.guards.values():
        for guard in guards.guards:
            if guard.file:
                compiles = failures.of(guards.frame, guard)
                yield Decision(
                    kind="guard",
                    words=f"{guard.kind}: {words(guard)}",
                    why=f"{outcome(compiles)}; one evaluation: {evaluation(guard.seconds)}",
                    frame=guards.frame,
                    file=guard.file,
                    line=guard.line,
                )
