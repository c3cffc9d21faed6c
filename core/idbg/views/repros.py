"""Describe repros and minifications: what fails, how far a search has come, and its result."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from idbg.format import file_names
from idbg.format.amounts import counted, elapsed, size
from idbg.format.failures import headline, with_hint
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.verdicts import violation_words
from idbg.schema.programs import Verdict
from idbg.schema.repros import Minified, MinifyProgress, OtherFailure, Signature, Sought
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.violations import Violation, problem
from idbg.views.tree import Cell, Column, Row, Section, Table, Tone, words

REPRODUCED, GONE, OTHER = 1, 0, 2
"""The exit statuses of every script of ours: it fails so again; it does not fail; it fails in another way."""

_PRINTED = 12  # lines of what a script printed that did not do as it should
_WRONG = {
    "values": "wrong values",
    "nan": "NaN or infinities that eager has not",
    "lost": "not the NaN or infinities that eager has",
    "form": "another dtype or shape",
}


# ------------------------------------------------------------- what is looked for


def sought_words(sought: Sought) -> str:
    """Which failure it is, as it follows "a repro of": "alignment at cumsum", "the failure"."""
    match sought.kind:
        case "violation" if sought.node is not None:
            return f"{sought.rule or 'the violation'} at {sought.node.name}"
        case "violation":
            return sought.rule or "the violation"
        case "wrong":
            return "the wrong result" if sought.launch is None else f"what launch {sought.launch} computes wrongly"
        case "node":
            return f"what feeds {sought.node.name}" if sought.node else "what feeds the node"
        case "break":
            return f"the graph break at {sought.place}" if sought.place else "the first graph break"
        case "recompile":
            return f"the recompile at {sought.place}" if sought.place else "the first recompile"
        case "check":
            return f"what makes `{' '.join(sought.command)}` fail"
        case "hang":
            return "the hang"
        case _:
            return "the failure"


def signature_words(signature: Signature) -> str:
    """A failure in a few words: "cumsum: alignment", "wrong values", "killed by SIGSEGV"."""
    where = f" at {signature.place.removesuffix(':')}" if signature.place else ""
    match signature.kind:
        case "violation":
            return ": ".join(part for part in (signature.message, signature.type) if part)
        case "wrong":
            return _WRONG.get(signature.message, signature.message or "a wrong result")
        case "died":
            return f"killed by {signature.type}" if signature.type else "its process dies"
        case "hung":
            return "it does not end"
        case "break":
            return f"a graph break{where}" + (f": {signature.message}" if signature.message else "")
        case "recompile":
            return f"a recompile{where}" + (f": {signature.message}" if signature.message else "")
        case "check":
            return f"the command fails{f': {signature.message}' if signature.message else ''}"
        case "none":
            return "nothing fails"
    words = ": ".join(part for part in (signature.type, signature.message) if part) or "it fails"
    return f"{words} (in {signature.stage})" if signature.stage else words


# ------------------------------------------------------------- a search that goes on


def progress_words(progress: MinifyProgress) -> str:
    """How far a search has come, in a line: what it does, what is left, what it took, what it will take."""
    tries = f"{progress.calls:,}" + (f" of {progress.budget:,}" if progress.budget else "")
    known = f", {progress.known:,} more known from before" if progress.known else ""
    took = f"{tries} {'try' if tries == '1' else 'tries'} in {elapsed(progress.seconds)}{known}"
    eta = "" if progress.eta is None else f"about {rough(progress.eta)} to go"
    pieces = (_left(progress.size, progress.whole, progress.unit), took, eta, others_words(progress.others))
    return f"{progress.doing}: " + "; ".join(piece for piece in pieces if piece)


def progress_pieces(progress: MinifyProgress) -> list[str]:
    """The same in little room, what matters least at the end: "prefix", "412 of 1,934 nodes", "17 of 300 tries",
    "about 40 s left", "2 other failures".
    """
    tries = f"{progress.calls:,} of {counted(progress.budget, 'try')}" if progress.budget else ""
    eta = "" if progress.eta is None else f"about {rough(progress.eta)} left"
    others = counted(progress.others, "other failure") if progress.others else ""
    left = _left(progress.size, progress.whole, progress.unit)
    return [piece for piece in (progress.doing, left, tries, eta, others) if piece]


def rough(seconds: float) -> str:
    """A time that is not known well: "40 s", "3 min", "2 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def left_words(of: Minified | MinifyProgress) -> str:
    """How much is left of the whole: "3 of 1,934 nodes"; "" where it is not counted."""
    return _left(of.size, of.whole, of.unit)


def _left(left: int, whole: int, unit: str) -> str:
    """ "3 of 1,934 nodes"; "3 nodes" where there is no whole; "" where there is nothing to count."""
    if not whole:
        return counted(left, unit.removesuffix("s")) if left else ""
    return f"{left:,} of {counted(whole, unit.removesuffix('s'))}"


def others_words(number: int) -> str:
    """How many failures of another kind were met; "" where there were none."""
    return f"{number:,} other failure{'s were' if number != 1 else ' was'} met" if number else ""


# ------------------------------------------------------------- what a search came to


def result_words(found: Minified) -> str:
    """What a search came to, in one line."""
    return "; ".join(_pieces(found))


def brief_words(found: Minified, *, stopped: bool = False) -> str:
    """The same in little room: what was found, how small it is, and whether it fails by itself."""
    if not found.path:
        return result_words(found)
    size_words = _size(found)
    if found.signature.kind == "none":
        return f"written: {size_words or 'a script'}, in which nothing is known to fail"
    again = {
        True: "fails so in a fresh process",
        False: "does NOT fail so in a fresh process",
        None: "was not run alone",
    }
    if stopped:
        which = "stopped: the smallest so far"
    elif found.minimal:
        which = "1-minimal"
    else:
        which = "the whole" if found.size == found.whole else "the smallest so far"
    others = f"; {others_words(sum(other.count for other in found.others))}" if found.others else ""
    return f"{which}{f', {size_words},' if size_words else ''} {again[found.reproduced]}{others}"


def result_lines(found: Minified) -> Iterator[str]:
    """The same for whoever has room: the sentence, the script, the failures met on the way, what does not fail."""
    yield f"{sign(found.reproduced) if found.path else VERDICT_SIGNS['waiting']} {result_words(found)}"
    if found.note:
        yield found.note
    if found.path:
        yield f"script: {file_names.from_here(found.path)}"
    yield from (f"met on the way: {other_words(other)}" for other in found.others)
    if found.passing:
        lacks = f" (it lacks {', '.join(found.difference)})" if found.difference else ""
        yield f"the nearest that does not fail{lacks}: {file_names.from_here(found.passing)}"


def _pieces(found: Minified) -> Iterator[str]:
    if found.signature.kind == "none" and found.path:
        yield brief_words(found)
        return
    if found.signature.kind == "none":
        yield "nothing fails, so there is nothing to make smaller"
        if found.tried > 1:
            yield f"it ran {found.tried:,} times without a failure"
        return
    if size_words := _size(found):
        yield size_words
    yield again_words(found)
    if found.tried > found.failed == 0:
        yield f"the whole failed in none of {found.tried:,} tries"
    elif found.tried > found.failed:
        yield f"not every time: the whole failed in {found.failed:,} of {found.tried:,} tries"
    yield _guarantee(found)
    yield _tries(found)
    if found.others:
        yield others_words(sum(other.count for other in found.others))


def guarantee_words(found: Minified) -> str:
    """What is promised of the script, and what that took: "1-minimal: no node can be left out; 31 tries in 12.0 s"."""
    if found.signature.kind == "none":
        return result_words(found) if not found.path else brief_words(found)
    lines = _lines(found)
    return "; ".join(part for part in (_guarantee(found), lines, _tries(found)) if part)


def _tries(found: Minified) -> str:
    known = f" ({found.known:,} more known from before)" if found.known else ""
    return f"{counted(found.calls, 'try')} in {elapsed(found.seconds)}{known}"


def _guarantee(found: Minified) -> str:
    return found.guarantee or ("1-minimal: no node can be left out" if found.minimal else "not shown to be minimal")


def _size(found: Minified) -> str:
    return ", ".join(part for part in (_left(found.size, found.whole, found.unit), _lines(found)) if part)


def _lines(found: Minified) -> str:
    lines = counted(found.lines, "line") if found.lines and found.unit != "lines" else ""
    data = size(found.bytes) if found.bytes >= 100_000 else ""  # what a report can carry needs no word
    return ", ".join(part for part in (lines, data) if part)


def again_words(found: Minified) -> str:
    """Whether the script was seen to fail by itself, and how."""
    words = signature_words(found.signature)
    if not found.path:
        return f"no script ({words})"
    match found.reproduced:
        case True:
            return f"it fails again in a fresh process ({words})"
        case False:
            status = "" if found.status is None else f", exit {found.status}"
            return f"it does NOT fail so in a fresh process ({words}{status})"
        case _:
            return f"it was not run in a fresh process ({words})"


def other_words(other: OtherFailure) -> str:
    """One failure that was met: what it is, how often, and the script that showed it first."""
    often = f", {other.count:,} times" if other.count > 1 else ""
    where = f": {file_names.from_here(other.path)}" if other.path else ""
    return f"{other.signature}{often}{where}"


# ------------------------------------------------------------- a session's repros


def sign(reproduced: bool | None) -> str:
    """The sign of a script that was tried; the one for "not known" where it was not."""
    return VERDICT_SIGNS[verdict(reproduced)]


def verdict(reproduced: bool | None) -> Verdict:
    """Whose sign and colour it has: a script is good where it fails."""
    return "waiting" if reproduced is None else "clean" if reproduced else "failed"


def status_words(repro: SessionRepro, *, live: bool = True) -> str:
    """What is known of a repro, in a few words: "reproduces", "not written", "goes on". `live`: its session is."""
    if not repro.ended:
        return ("searching" if repro.origin == "minified" else "being written") if live else "never ended"
    if repro.minified is not None and repro.minified.signature.kind == "none":
        return "written" if repro.path else "nothing fails"
    if not repro.path:
        return "stopped" if repro.stopped else "no script"
    return reproduced_words(repro.reproduced) + (", stopped early" if repro.stopped else "")


def reproduced_words(reproduced: bool | None) -> str:
    """Whether a script failed again, in a word or two."""
    return {True: "reproduces", False: "does not reproduce", None: "not tried"}[reproduced]


def tried_words(repro: SessionRepro) -> str:
    """What became of a repro that is done, in one line without its path: the status, and what proves it."""
    if repro.minified is not None:
        return result_words(repro.minified)
    if repro.failure is not None:
        why = next((line for line in repro.failure.message.strip().splitlines() if line), "")
        return f"{status_words(repro)}: {why}".removesuffix(": ")
    proof = "" if repro.status is None else f" (exit {repro.status})"
    return f"{status_words(repro)}{proof}"


def age(at: float, now: float) -> str:
    """How long ago, both in seconds since the epoch: "12 s", "4 min", "3 h", "2 days"."""
    seconds = max(now - at, 0.0)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds // 86400:.0f} days"


def what_words(repro: SessionRepro) -> str:
    """Of which run it is, what it shows, and how it came to be."""
    how = {"strict": ", by strict rules", "kernel": ", one launch", "minified": ", minified", "written": ""}
    return f"run {repro.run}: {sought_words(repro.sought)}{how[repro.origin]}"


def kept_line(repro: SessionRepro, now: float) -> str:
    """A repro of a session in a line: sign, what of, status, age, path."""
    path = file_names.from_here(repro.path) if repro.path else MARKS["separator"]
    known = repro.reproduced if repro.ended else None
    return f"{sign(known)} {what_words(repro)}  {status_words(repro, live=False)}, {age(repro.at, now)} ago  {path}"


def violation_line(number: int, violation: Violation) -> str:
    """A violation by the number that `--violation` takes."""
    place = near_place(violation.file, violation.line)
    where = f"  ({place})" if place else ""
    what = f"{violation.rule}: {violation.node.name} [{violation.node.graph.stage}]"
    return f"{number:>4}  {violation.severity}  {what} {problem(violation.found, violation.wanted)}{where}"


def listed(run: Run, repros: Sequence[SessionRepro], now: float) -> Iterator[str]:
    """What there is to reproduce of a run, and the repros that its session has."""
    yield f"{violation_words(run.violations)} of run {run.number}{':' if run.violations else ''}"
    yield from (violation_line(number, each) for number, each in enumerate(run.violations, 1) if not each.again)
    if run.cause is not None:
        yield f"{VERDICT_SIGNS['failed']} the run failed: {headline(run.cause)} (idbg repro without an option)"
    yield f"{counted(len(repros), 'repro')}{':' if repros else ''}"
    yield from (f"  {kept_line(each, now)}" for each in repros)


def next_step(of_violation: bool) -> str:
    """What to do where no script shows a failure."""
    if of_violation:
        return "take a violation of the same line at another stage: idbg repro --list has them"
    return "idbg minify looks for the smallest part of the whole program that fails so (X on the screen)"


def written_lines(repro: SessionRepro) -> Iterator[str]:
    """What became of a repro that was written, and what it printed where that is not what was to be seen."""
    if repro.minified is not None:
        yield from result_lines(repro.minified)
        return
    yield f"{sign(repro.reproduced)} {sought_words(repro.sought)}: {tried_words(repro)}"
    if repro.failure is not None and repro.failure.hint:
        yield f"  {repro.failure.hint}"
    if repro.path:
        yield f"script: {file_names.from_here(repro.path)}"
    if repro.path and not repro.reproduced and repro.failure is None:
        yield from (f"  {line}" for line in repro.printed.strip().splitlines()[-_PRINTED:])
        yield f"  {next_step(repro.sought.node is not None)}"


# ------------------------------------------------------------- the table of a session's repros

_WHOLE = 40  # cells: what it shows is cut before these columns are
_COLUMNS = tuple(Column(head, least=_WHOLE) for head in ("status", "left", "age"))
_MOST_OTHERS = 5
_ORIGINS = {
    "strict": "written by strict rules",
    "kernel": "of one launch",
    "minified": "minified",
    "written": "written",
}
_TONES: dict[Verdict, Tone] = {"clean": "clean", "failed": "reject"}


def table(repros: Sequence[SessionRepro], runs: Mapping[int, Run], now: float, *, live: bool) -> Section:
    """All repros, the newest first, each with what is known of it in the rows below. `live`: its session is.

    The key of a repro is ("repro", NUMBER), counted from the oldest; of a row below ("repro", NUMBER, KIND, PLACE).
    """
    rows: list[Row] = []
    for number in reversed(range(len(repros))):
        repro = repros[number]
        rows.append(_table_row(number, repro, runs.get(repro.run), now, live=live))
        for place, (text, tone) in enumerate(_facts(repro, live=live)):
            rows.append(Row(("repro", number, "fact", place), words(("  " + text, tone)), copied=repro.path))
        rows += _others(number, repro)
    return Section("Repros", counted(len(repros), "repro"), len(repros), body=(Table(_COLUMNS, rows, "what it shows"),))


def short_path(path: str) -> str:
    """A script's path from the session's folder where it lies in that, else from here."""
    parts = PurePath(path).parts
    places = [index for index, part in enumerate(parts) if part == "repros"]
    return "/".join(parts[places[-1] :]) if places else file_names.from_here(path) if path else ""


def _table_row(number: int, repro: SessionRepro, run: Run | None, now: float, *, live: bool) -> Row:
    looks = verdict(repro.reproduced if repro.ended else None)
    tone = _TONES.get(looks, "dim")
    mark = MARKS["separator"] if repro.ended and looks == "waiting" else VERDICT_SIGNS[looks]
    found = repro.minified or repro.progress
    cells = (
        Cell(status_words(repro, live=live).partition(",")[0], tone if repro.ended or not live else "accent"),
        Cell(left_words(found) if found is not None else ""),
        Cell(age(repro.at, now), "dim"),
    )
    return Row(("repro", number), words((f"{mark} ", tone), (_shows(repro, run), "strong")), cells, copied=repro.path)


def _shows(repro: SessionRepro, run: Run | None) -> str:
    """What it shows: the failure's signature where that is known, else the request, by its name."""
    sought, found = repro.sought, repro.minified
    if found is not None and found.signature.kind != "none":
        return signature_words(found.signature)
    if sought.kind == "wrong" and sought.launch is not None and run is not None and run.diff is not None:
        named = run.diff.kernels[sought.launch : sought.launch + 1]
        return f"{named[0].name} is wrong" if named else sought_words(sought)
    failure = (run.failure or run.cause) if run is not None else None
    if sought.kind == "failure" and failure is not None:
        line = headline(failure)
        return line.cause or line.what
    return sought_words(sought)


def _facts(repro: SessionRepro, *, live: bool) -> Iterator[tuple[str, Tone]]:
    """The script and how it was made, or why there is none; what its search does, or came to."""
    if repro.path:
        yield f"{short_path(repro.path)}, {'written' if repro.sought.kind == 'node' else _ORIGINS[repro.origin]}", "dim"
    if not repro.ended and repro.progress is not None:
        yield "  ".join(progress_pieces(repro.progress)), "accent"
    if (found := repro.minified) is not None:
        continues = live and repro.path and not found.minimal and found.signature.kind != "none"
        yield guarantee_words(found) + ("; X goes on" if continues else ""), "dim" if found.minimal else "fallback"
        if found.passing:
            lacks = f": it lacks {', '.join(found.difference)}" if found.difference else ""
            yield f"beside the nearest that does not fail{lacks}", "dim"
    if repro.failure is not None and not repro.stopped:
        yield with_hint(repro.failure), "reject"
    elif repro.stopped and repro.minified is None and live:
        yield "it was stopped before a script was found: X begins again", "fallback"


def _others(number: int, repro: SessionRepro) -> Iterator[Row]:
    """A row for each failure of another kind, the most frequent first, each with its own script."""
    others = other_failures(repro)
    for place, other in enumerate(others[:_MOST_OTHERS]):
        often = f" {MARKS['times']}{other.count:,}" if other.count > 1 else ""
        text = words((f"  {MARKS['arrow']} ", "accent"), f"also met{often}: {other.signature}")
        yield Row(("repro", number, "other", place), text, copied=other.path)
    if len(others) > _MOST_OTHERS:
        more = f"  and {counted(len(others) - _MOST_OTHERS, 'other failure')}, whose scripts lie beside it"
        yield Row(("repro", number, "others", 0), words((more, "dim")))


def other_failures(repro: SessionRepro) -> list[OtherFailure]:
    """The failures of another kind that its search met, as the table lists them."""
    return sorted(repro.minified.others if repro.minified is not None else (), key=lambda one: -one.count)
