"""Which frames were compiled, how did they end, and which functions did Dynamo leave alone?"""

from collections.abc import Iterable, Iterator

from msgspec import to_builtins

from idbg.analysis.decisions.frames import FrameRow, rows, spoken_name
from idbg.analysis.decisions.stacks import of_program, whose
from idbg.format.amounts import NOT_MEASURED, counted, duration
from idbg.format.file_names import near_place
from idbg.reports.decisions.stacks import stack_lines
from idbg.schema.decisions.decision import Decision
from idbg.schema.decisions.dynamo import Skip
from idbg.schema.runs import Run

SKIPS = 20  # functions left alone that are listed, in text
ROWS = 200  # frames, in text
REASONS: dict[str, str] = {
    "frame is in the Dynamo skipfiles list": "Dynamo never compiles code of this file",
    "no tensor-related objects found in frame": "no tensors in it",
    "frame has already started executing": "it was running already",
    "Dynamo tracing is disabled": "Dynamo is switched off",
    "": "this version of torch does not say why",
}


def text(run: Run) -> Iterable[str]:
    """The tree of frames, those that are alike in one line, and what was left alone."""
    yield headline(run)
    found = rows(run)
    for row in found[:ROWS]:
        yield "  " * (row.depth + 1) + ", ".join(told(row))
        yield from ("  " * (row.depth + 3) + line for line in _stack(run, row))
    if len(found) > ROWS:
        yield f"  … and {counted(len(found) - ROWS, 'line')} more (--json has all of them)"
    yield from _skips(run)


def headline(run: Run) -> str:
    """How many frames ended how, in a line; why there are none, if there are none."""
    if not run.frames and not run.decided.results:
        if run.decided.skips:
            return "nothing was compiled: Dynamo left alone every function that it was asked for"
        return "nothing was compiled: Dynamo was asked for no frame"
    results = run.decided.results
    ends = [result.end for name, result in results.items() if name in run.frames]
    parts = [counted(len(run.frames), "frame")]
    parts += [f"{ends.count(end)} {words}" for end, words in END_WORDS.items() if end in ends]
    if len(ends) < len(run.frames):
        parts.append(f"{len(run.frames) - len(ends)} of which torch told no end")
    if refused := len(results) - len(ends):
        parts.append(f"{counted(refused, 'compile')} refused by the recompile limit")
    return ", ".join(parts)


END_WORDS: dict[str, str] = {
    "compiled": "compiled",
    "eager": "given up, and run in eager",
    "skipped": "left alone",
    "failed": "failed",
}


def told(row: FrameRow) -> Iterator[str]:
    """What there is to say of a row, most important first."""
    times = f" ×{row.count}, alike" if row.count > 1 else ""
    place = near_place(row.file, row.line)
    yield f"{row.ids[0]} {row.name}{times}{f' ({place})' if place else ''}"
    if row.end != "compiled":
        yield END_WORDS.get(row.end, "goes on, or its end was not told") + (f": {row.why}" if row.why else "")
    if row.ops is not None:
        yield counted(row.ops, "op")
    if row.kernels:
        yield counted(row.kernels, "kernel")
    if row.breaks:
        yield counted(row.breaks, "break")
    if row.attempts > row.count:
        yield f"traced {row.attempts} times"
    if row.asked:
        yield f"{row.hits} of {row.asked} found in caches"
    yield duration(1000 * row.seconds) if row.seconds is not None else NOT_MEASURED


def _stack(run: Run, row: FrameRow) -> Iterator[str]:
    """The user's way to where a frame was given up for an error: of a break it is told with the break."""
    result = run.decided.results.get(row.ids[0])
    return stack_lines(result.stack) if result is not None and result.end == "failed" else iter(())


def _skips(run: Run) -> Iterator[str]:
    own, others = _parted(run.decided.skips)
    dropped = run.decided.skips_dropped
    if own or others:
        yield ""
        yield f"left alone: {counted(len(own), 'function')} of yours, {len(others) + dropped} of torch and libraries"
    for skip in own[:SKIPS]:
        yield f"  {spoken_name(skip.function)} ({near_place(skip.file, skip.line)}): {plain(skip)}"
    if len(own) > SKIPS:
        yield f"  … and {len(own) - SKIPS} more (--json has all of them)"


def _parted(skips: Iterable[Skip]) -> tuple[list[Skip], list[Skip]]:
    own: list[Skip] = []
    others: list[Skip] = []
    for skip in skips:
        (own if whose(skip.file) == "user" else others).append(skip)
    return own, others


def plain(skip: Skip) -> str:
    """Why it was left alone, in plain words where we have them, else in torch's."""
    return REASONS.get(skip.reason, skip.reason)


def as_json(run: Run) -> object:
    """Each frame by itself, with what became of it and how deep it stands; each function that was left alone."""
    return {
        "frames": [
            {
                "frame": row.ids[0],
                "parent": run.frames[row.ids[0]].parent,
                "depth": row.depth,
                "function": row.function,
                "after_line": row.resumed or None,
                "file": row.file,
                "line": row.line,
                "end": row.end or None,
                "why": row.why,
                "stack": to_builtins(of_program(run.decided.results[row.ids[0]].stack)) if row.end else [],
                "seconds": row.seconds,
                "attempts": row.attempts,
                "restarts": row.restarts,
                "ops": row.ops,
                "guards": row.guards,
                "breaks": row.breaks,
                "graphs": row.graphs,
                "kernels": row.kernels,
                "cache_hits": row.hits,
                "cache_asked": row.asked,
            }
            for row in rows(run, folded=False)
        ],
        "left_alone": to_builtins(run.decided.skips),
        "left_alone_not_listed": run.decided.skips_dropped,
    }


def about(run: Run) -> Iterable[Decision]:
    """Each function that was left alone, and each frame that is not compiled, at its line."""
    for skip in run.decided.skips:
        words = f"{spoken_name(skip.function)} is left alone: {plain(skip)}"
        yield Decision(kind="skip", words=words, why=skip.reason, file=skip.file, line=skip.line)
    for name, result in run.decided.results.items():
        frame = run.frames.get(name)
        if frame is not None and result.end in ("skipped", "eager"):
            words = f"{frame.function} is {END_WORDS[result.end]}"
            yield Decision(kind="skip", words=words, why=result.why, frame=name, file=frame.file, line=frame.line)
