"""List what is wrong with runs, the worst first, so that no kind of it hides another: the same rows in every output."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from idbg import views
from idbg.format.amounts import counted
from idbg.format.glyphs import MARKS
from idbg.schema.decisions import reports
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.runs import History, Run
from idbg.views import diagnostics, kernel_times
from idbg.views.diagnostics import KINDS, SIGNS, Diagnostic, Level, badness, of_history
from idbg.views.tree import Block, Place, Refs, Row, Section, Table, Tone, Verdict, words

TITLE = "Findings"
_WORST_FIRST: tuple[Verdict, ...] = ("error", "warning", "unknown", "ok")
_TONES: dict[Level, Tone] = {"error": "reject", "warning": "fallback", "note": "dim"}


def listed(found: Sequence[Diagnostic], runs: Mapping[str, Sequence[int]] | None = None) -> Section:
    """A row each, in their order: where, what, and below it what to do. `runs` has the numbers of the runs that have
    it, by its key.
    """
    rows = [row(each, (runs or {}).get(each.key, ())) for each in found]
    verdict: Verdict = "warning" if found else "ok"
    verdict = "error" if any(each.level == "error" for each in found) else verdict
    return Section(TITLE, "", len(found), verdict, (Table((), rows, "finding"),) if rows else ())


class Kind(NamedTuple):
    """All findings of one kind."""

    name: str
    title: str
    section: Section


def kinds_of(history: History, run: Run | None, broken: Section, times: KernelTimes | None = None) -> list[Kind]:
    """What is wrong in the last runs of a session, then the rules that are `broken`, and what cost time in one `run`,
    whose kernels take these `times`: each kind that there is, the worst first. The rows are those of each one's view.
    """
    wrong = of_history(history, diagnostics.wrong)
    failed = listed([each for each in wrong if each.kind == "failure"])
    numbers = listed([each for each in wrong if each.kind in ("mismatch", "change")])
    kinds = [
        Kind("failures", "Failures", failed),
        Kind("numbers", "Wrong numbers", numbers),
        Kind("violations", "Violations", broken),
    ]
    if run is not None:
        for report in sorted((each for each in reports() if each.finding), key=lambda each: each.finding):
            module = views.view(report.name)
            kinds.append(Kind(report.name, module.TITLE, getattr(module, "findings", module.view)(run)))
    if times is not None:
        kinds.append(Kind("slow", kernel_times.SLOW, kernel_times.slow(times)))
    return [kind for kind in kinds if kind.section.count or (kind.section is broken and broken.body)]


def section(kinds: Sequence[Kind], only: str = "") -> Section:
    """All of them one below the other, or `only` the kind of that name; each table has the kind's title where there
    are several.
    """
    shown = [kind for kind in kinds if only in ("", kind.name)]
    if len(shown) == 1:
        return shown[0].section
    body: list[Block] = []
    for kind in shown:
        first, *rest = kind.section.body
        summary = f": {kind.section.summary}" if kind.section.summary else ""
        body += [structs.replace(first, title=f"{kind.title}{summary}") if isinstance(first, Table) else first, *rest]
    count = sum(kind.section.count or 0 for kind in shown)
    verdicts = {kind.section.verdict for kind in shown} | {"ok"}
    worst = next(verdict for verdict in _WORST_FIRST if verdict in verdicts)
    return Section(TITLE, "", count, worst, tuple(body))


def row(found: Diagnostic, runs: Sequence[int] = ()) -> Row:
    """One finding: its line, kind, rule and message; below it its figures, and what to do."""
    named = found.rule if found.kind not in (found.rule, "failure") else ""  # whose a failure is, its message says
    often = f"  x{found.count:,}" if found.count > 1 else ""
    of_runs = f"  in run {', '.join(map(str, runs))}" if runs else ""
    return Row(
        ("finding", found.rule if found.rule == "benchmark" else found.kind, found.key),
        words(
            (f"{SIGNS[found.level]} ", _TONES[found.level]),
            *((Place(found.file, found.line), ": ") if found.file else ()),
            f"{found.kind} " if named else found.kind,
            (named, "strong"),
            f": {' '.join(found.message.split())}",
            (f"{often}{of_runs}", "dim"),
        ),
        rows=list(_what_to_do(found)),
        open="all",
        refs=Refs(found.nodes, file=found.file, line=found.line),
        opens="node" if found.nodes else "edit" if found.file else "fold",
    )


def _what_to_do(found: Diagnostic) -> Iterator[Row]:
    if found.detail:
        yield Row(("detail", found.key), words((" ".join(found.detail.split()), "dim")))
    if found.fix:
        yield Row(("fix", found.key), words((f"{MARKS['arrow']} {' '.join(found.fix.split())}", "accent")))


def nothing(runs: Sequence[Run]) -> str:
    """What was checked without a finding, and what was not checked."""
    looked = ["failure", "graph break", "recompile"]
    unchecked = []
    for kind, is_checked, why in (
        ("violation", all(run.checked_rules for run in runs), "no rules were checked"),
        ("mismatch", all(run.diff is not None for run in runs), "the numbers were not compared"),
    ):
        looked += [kind] if is_checked else []
        unchecked += [] if is_checked else [why]
    of_some = " of each run" if len(runs) > 1 else ""
    ended = "" if all(run.verdict != "waiting" for run in runs) else " so far"
    beside = f" ({' and '.join(unchecked)}{of_some})" if unchecked else ""
    return f"No {', '.join(looked[:-1])} or {looked[-1]} is known of{ended}{beside}."


def by_line(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The same with all that one rule finds at one line as one violation; the worst first."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for each in found:
        place = (each.program, each.accelerator, each.rule, each.severity, each.file, each.line)
        groups.setdefault(place if each.kind == "violation" else (each.key,), []).append(each)
    return sorted((_as_one(group) for group in groups.values()), key=badness)


def _as_one(group: list[Diagnostic]) -> Diagnostic:
    first = min(group, key=badness)
    if len(group) == 1:
        return first
    return structs.replace(
        first,
        message=f"{first.message}; and {counted(len(group) - 1, 'other finding')} at this line",
        nodes=tuple(node for each in group for node in each.nodes),
        count=sum(each.count for each in group),
    )


def split(found: Sequence[Diagnostic], most: int) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """At most so many to show, and the others; both in the order of `found`. Each kind has an equal share of the room,
    and what a kind does not need goes to the first of the others.
    """
    share = most // max(1, len({each.kind for each in found}))
    of_kind: Counter[str] = Counter()
    within: list[int] = []
    beyond: list[int] = []
    for place, each in enumerate(found):
        (within if of_kind[each.kind] < share else beyond).append(place)
        of_kind[each.kind] += 1
    shown = {*within, *beyond[: most - len(within)]}
    return (
        [each for place, each in enumerate(found) if place in shown],
        [each for place, each in enumerate(found) if place not in shown],
    )


def kinds(found: Iterable[Diagnostic]) -> str:
    """ "19 violations and 1 recompile"."""
    counts = Counter(each.kind for each in found)
    words = [counted(counts[kind], kind) for kind in KINDS if counts[kind]]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
