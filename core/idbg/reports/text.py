"""How does a run read to a person, on one screen?

Verdict first, then what was compiled, then the violations by rule and by the user's line.
"""

from collections.abc import Iterator
from itertools import groupby
from os.path import relpath

from idbg.records import Severity, Stage, Verdict, Violation
from idbg.run import Run

SIGNS: dict[Severity, str] = {"reject": "✘", "fallback": "⚠", "pad": "◇", "tile": "◇", "slow": "·"}
VERDICT_SIGNS: dict[Verdict, str] = {"clean": "✔", "violations": "✘", "failed": "✘"}

LINES_OF_A_RULE = 6  # the user's lines shown of one rule: five rules still fit a screen
NODES_OF_A_LINE = 3


def run_report(run: Run) -> list[str]:
    """The lines that tell the run, as far as it has come."""
    return [_headline(run), *_contents(run), *_failure(run), *_violations(run)]


def render(lines: list[str]) -> str:
    return "\n".join(lines)


def _headline(run: Run) -> str:
    target = run.target
    mode = "strict" if target.strict else "warn"
    place = f"{target.backend} · {target.device or 'its own device'} · {target.accelerator} ({mode})"
    if run.verdict is None:
        return f"… {run.program.label}   {place}   {run.phase or 'starting'}"
    words = {"clean": "clean", "violations": _count(len(run.violations), "violation"), "failed": "failed"}[run.verdict]
    return f"{VERDICT_SIGNS[run.verdict]} {words}   {run.program.label}   {place}   {run.seconds:.1f} s"


def _contents(run: Run) -> Iterator[str]:
    if run.graphs:
        nodes = sum(len(graph.nodes) for graph in run.graphs.values())
        counts = [
            f"{_count(len(run.graphs), 'graph')} of {_count(len({graph.frame for graph in run.graphs}), 'frame')}",
            _count(nodes, "node"),
            _count(len(run.kernels), "kernel"),
            _count(len(run.breaks), "graph break"),
        ]
        yield "  " + ", ".join(counts + ([_count(len(run.recompiles), "recompile")] if run.recompiles else []))
    for graph_break in run.breaks[:LINES_OF_A_RULE]:
        reason = graph_break.reason.strip().partition("\n")[0]
        yield f"  graph break at {_place(graph_break.file, graph_break.line) or 'an unknown line'}: {reason}"
    if len(run.breaks) > LINES_OF_A_RULE:
        yield f"  … and {_count(len(run.breaks) - LINES_OF_A_RULE, 'graph break')} more"


def _failure(run: Run) -> Iterator[str]:
    """The failure's message, unless it only lists the violations that follow."""
    if run.failure is None or (run.failure.kind == "constraints" and run.violations):
        return
    yield ""
    place = _place(run.failure.file, run.failure.line)
    yield f"{run.failure.message}{f' ({place})' if place else ''}"
    if run.failure.hint:
        yield f"  {run.failure.hint}"
    if run.failure.traceback:
        yield from ("  " + line for line in run.failure.traceback.rstrip().splitlines())


def _violations(run: Run) -> Iterator[str]:
    by_rule: dict[tuple[str, Severity], list[Violation]] = {}
    for violation in run.violations:
        by_rule.setdefault((violation.rule, violation.severity), []).append(violation)
    for (rule, severity), found in by_rule.items():
        yield ""
        yield f"{SIGNS[severity]} {rule}   {len(found)}   {severity}"
        rows = _rows(found)
        for row in rows[:LINES_OF_A_RULE]:
            yield from row
        if len(rows) > LINES_OF_A_RULE:
            yield f"    … and {_count(len(rows) - LINES_OF_A_RULE, 'finding')} more; --json has all of them"


def _rows(found: list[Violation]) -> list[list[str]]:
    """For each of the user's lines and each thing found there: what it is, and which nodes at which stages have it."""

    def what(violation: Violation) -> tuple[str, int, str, str, str]:
        return violation.file, violation.line, violation.found, violation.wanted, violation.fix

    rows = []
    for (file, line, given, wanted, fix), alike in groupby(sorted(found, key=what), key=what):
        violations = list(alike)
        names = list(dict.fromkeys(violation.node.name for violation in violations))
        stages: list[Stage] = list(dict.fromkeys(violation.node.graph.stage for violation in violations))
        more = f", +{len(names) - NODES_OF_A_LINE}" if len(names) > NODES_OF_A_LINE else ""
        row = [
            f"    {_place(file, line) or 'no line of yours'}   {given}; wanted {wanted}",
            f"      {', '.join(names[:NODES_OF_A_LINE])}{more} ({', '.join(stages)})",
        ]
        rows.append([*row, f"      → {fix}"] if fix else row)
    return rows


def _place(file: str, line: int) -> str:
    """file:line, relative to here if the file is below."""
    if not file:
        return ""
    near = relpath(file)
    return f"{file if near.startswith('..') else near}:{line}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
