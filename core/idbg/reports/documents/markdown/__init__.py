"""Write a session as Markdown for an issue or a pull request.

The verdict, what was found, how to have it again, and the details folded: never more than GitHub takes of a comment.
"""

import re
from collections.abc import Iterator

import idbg
from idbg.format.amounts import counted, elapsed, few
from idbg.format.file_names import short
from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.verdicts import session_words, verdict_words
from idbg.render.text import text as as_text
from idbg.reports import diff
from idbg.reports.commands import command
from idbg.reports.documents import SessionData
from idbg.reports.documents.markdown.text import block, code, folded
from idbg.reports.text import counts, run_report
from idbg.schema.runs import Run
from idbg.views import bench, environment, findings
from idbg.views.diagnostics import SIGNS, Diagnostic, changes, last_runs, of_history, stable_file
from idbg.views.processes import listed

ABOUT, SUFFIXES = "for an issue or a pull request", (".md",)
MOST = 65_536  # characters that GitHub takes
MOST_FINDINGS = 40  # rows, each kind has its share of them
MOST_RUNS = 10
MOST_BESIDE = 10  # that are new, and as many that are gone
_LEAST_FOLDED = 400  # characters: less of a run tells nothing


def render(session: SessionData) -> bytes:
    """The text, at most MOST characters of it; what is left out is listed at its end."""
    runs = last_runs(session.history)
    found = of_history(session.history)
    parts = [
        _head(session, runs),
        *_table(found, runs),
        *_beside(session, found),
        *_reproduce(runs),
        *_environment(session),
    ]
    left_out = []
    for title, text in _details(session, runs):
        room = MOST - sum(len(part) + 2 for part in parts) - len(title) - 500  # for the fold and the end
        if room < _LEAST_FOLDED:
            left_out.append(title)
            continue
        parts.append(folded(title, block(text, most=room)))
    if left_out:
        named = few(left_out, 3, "; and {:,} more", "; ")
        parts.append(f"Left out, as a comment takes {MOST:,} characters: {named}.")
    return ("\n\n".join(parts) + "\n").encode()


def _head(session: SessionData, runs: list[Run]) -> str:
    missing = [f"- ⚠ {code(text, 400)}" for text in session.history.missing[:3]]
    if not runs:
        ran = session.history.rows or session.history.processes
        what = session_words(session.history) if ran else "nothing ran in this session"
        sign = f"{VERDICT_SIGNS[session.history.looks]} " if session.history.processes else ""
        return "\n".join([f"### {sign}idbg: {_inert(what)}", *([""] if missing else []), *missing])
    history = session.history
    lines = [f"### {VERDICT_SIGNS[history.looks]} idbg: {_inert(session_words(history))}", ""]
    lines += [f"- {_sentence(run)}" for run in runs[:MOST_RUNS]]
    if len(runs) > MOST_RUNS:
        lines.append(f"- and {counted(len(runs) - MOST_RUNS, 'run')} more")
    return "\n".join(lines + missing)


def _sentence(run: Run) -> str:
    """ "`model.py` on `mock`, accelerator `npu` (warn): 3 violations; 2 graphs, 40 nodes, 1 kernel, 3.2 s"."""
    target = run.target
    mode = "strict" if target.strict else "warn"
    known = counts(run)
    known += [elapsed(run.seconds)] if run.ended is not None else []
    rules = f"accelerator {code(target.accelerator)} ({mode})" if target.has_rules else "no accelerator"
    what = f"{code(run.program.label)} on {code(run.backend)}, {rules}"
    return f"{what}: **{_inert(verdict_words(run))}**; {', '.join(known)}"


def _inert(words: str) -> str:
    """A verdict in words of ours; they may name a side of a comparison, which is a backend of others."""
    return words if re.fullmatch(r"[\w ,:.()-]{1,100}", words) else code(words, 100)


def _table(found: list[Diagnostic], runs: list[Run]) -> Iterator[str]:
    if not found:
        return
    by_label = {run.program.label: run for run in runs}
    lines = ["| | what | found | where | what to do |", "|---|---|---|---|---|"]
    shown, more = findings.split(findings.by_line(found), MOST_FINDINGS)
    for each in shown:
        times = f" × {each.count:,}" if each.count > 1 else ""
        what = f"{each.kind} {code(each.rule, 60, cell=True)}{times}".replace(f"{each.kind} `{each.kind}`", each.kind)
        place = code(_place(each, by_label.get(each.program)), 120, cell=True)
        message = "; ".join(filter(None, (each.message, each.detail)))
        message, fix = code(message, 300, cell=True), code(each.fix, 200, cell=True)
        lines.append(f"| {SIGNS[each.level]} | {what} | {message} | {place} | {fix} |")
    yield "\n".join(lines)
    if more:
        yield f"… and {counted(len(more), 'finding')} more ({findings.kinds(more)}): the JSON report has all."


def _place(found: Diagnostic, run: Run | None) -> str:
    file = (stable_file(run, found.file) if run else short(found.file)) if found.file else ""
    return f"{file}:{found.line}" if file and found.line else file


def _beside(session: SessionData, found: list[Diagnostic]) -> Iterator[str]:
    """What is new and what went away beside the session that it is held against."""
    if session.other is None:
        return
    new, gone = changes(found, of_history(session.other.history))
    lines = [f"**Beside {code(session.other.name)}**: {len(new):,} new, {len(gone):,} gone", ""]
    for sign, some in (("new", new), ("gone", gone)):
        lines += [
            f"- {sign}: {each.kind} {code(each.rule, 60)}: {code(each.message, 200)}" for each in some[:MOST_BESIDE]
        ]
        lines += [f"- {sign}: {len(some) - MOST_BESIDE:,} more"] if len(some) > MOST_BESIDE else []
    yield "\n".join(lines).rstrip()


def _reproduce(runs: list[Run]) -> Iterator[str]:
    if runs:
        commands = dict.fromkeys(command(run) for run in runs[:MOST_RUNS])
        yield "**To have it again**\n\n" + block("\n".join(commands), "sh", most=4_000)


def _environment(session: SessionData) -> Iterator[str]:
    worker = session.history.worker
    known = [f"- idbg {idbg.__version__} wrote this"]
    if worker is not None:
        known += [f"- torch {code(worker.torch)}, Python {code(worker.python)}"]
        known += [f"- {code(device)}" for device in worker.devices[:16]]
        facts = environment.machine(worker.machine)
        known += [f"- {code(name)}: {code(value, 200)}" for name, value in facts if value]
    else:
        known += ["- which torch and Python it ran with is not known"]
    settings = dict.fromkeys(line for run in session.history.runs.values() for line in run.torch_settings or ())
    known += [f"- {code(line, 200)}" for line in settings]
    yield "**Environment**\n\n" + "\n".join(known)


def _details(session: SessionData, runs: list[Run]) -> Iterator[tuple[str, str]]:
    """Title and text of what is folded, the most important first."""
    for run in runs:
        which = f", run {run.number}" if len(runs) > 1 else ""
        if run.diff is not None:
            yield f"Where the numbers differ{which}", diff.summary(run.diff)
        yield f"The run as <code>idbg run</code> reports it{which}", "\n".join(run_report(run))
    if session.history.processes:
        yield "Processes", as_text(listed(session.history.processes.values()))
    if session.history.rows:
        yield "Benchmarks", as_text(bench.view(session.history.rows))
