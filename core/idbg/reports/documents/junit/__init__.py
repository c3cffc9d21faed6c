"""Write a session as JUnit XML, which every CI shows as tests.

A suite for each run, a case for each thing that was looked at: that it compiles, that the numbers agree, that no graph
breaks and nothing is compiled again, and each rule of the accelerator. A case fails by what is an error; what is a
warning or a note is in its output, so that a rule that only costs something turns no build red. What was not
looked at is skipped, with why. A session that is not whole is an error in a suite of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import idbg
from idbg.accelerators.parse import parse
from idbg.format.amounts import counted
from idbg.format.plain_text import one_line, plain
from idbg.format.processes import in_order
from idbg.format.verdicts import rules_words, verdict_words
from idbg.reports.documents import SessionData
from idbg.schema.errors import AcceleratorError
from idbg.schema.processes import ProcessReport
from idbg.schema.ranks import RankComparison
from idbg.schema.runs import History, Run
from idbg.views import remarks
from idbg.views.diagnostics import (
    Diagnostic,
    diagnostics,
    ended_ranks,
    last_runs,
    of_benchmark,
    of_processes,
    of_ranks,
    stable_file,
)

ABOUT, SUFFIXES = "test cases for a CI", (".xml", ".junit")
MOST_FINDINGS = 100  # findings of a case
MOST_OUTPUT = 20_000  # characters of what the program printed: its end
MOST_NAME, MOST_TEXT = 250, 2_000


class Case(NamedTuple):
    """One thing that was looked at, and what was found; `skipped` says why it was not. `broken`: it is no failure of
    what was looked at, but could not be looked at as a whole (JUnit's error).
    """

    name: str
    found: tuple[Diagnostic, ...] = ()
    skipped: str = ""
    broken: bool = False
    seconds: float | None = None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(each for each in self.found if each.level == "error")


def render(session: SessionData) -> bytes:
    """The file as UTF-8."""
    suites = [_suite(run, session.history, number) for number, run in enumerate(last_runs(session.history))]
    suites += [_benchmark(session)] if session.history.rows else []
    suites += [_processes(session)] if not session.history.runs and _unranked(session.history) else []
    suites += [_ranks(session.history.ranks)] if session.history.ranks is not None else []
    suites += [_lacking(session)] if session.history.missing else []
    return file_of(suites, session.name)


def file_of(suites: Sequence[Element], name: str) -> bytes:
    """The file with these suites, as UTF-8."""
    counts: dict[str, object] = {
        each: sum(int(suite.get(each, "0")) for suite in suites) for each in ("tests", "failures", "errors")
    }
    root = element("testsuites", counts | {"name": one_line(name, MOST_NAME) or "idbg"}, *suites)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def cases(run: Run) -> list[Case]:
    """What was looked at in a run."""
    found = diagnostics(run)
    seconds = run.seconds if run.ended is not None and isfinite(run.seconds) else None
    failures = _of(found, "failure")
    unfinished = _unfinished(run)
    return [
        Case("compiles and runs", failures, "" if failures else unfinished, broken=True, seconds=seconds),
        Case("graphs do not break", _of(found, "break"), _without(run, unfinished)),
        Case("nothing is compiled again", _of(found, "recompile"), _without(run, unfinished)),
        _numbers(run, found),
        *_rules(run, found, unfinished),
    ]


def _unfinished(run: Run) -> str:
    """Why what was not found may be there all the same; "" where the run came to its end."""
    if run.verdict == "waiting":
        return "the run did not come to its end"
    if run.stopped:
        return "the rules stopped the compile: not all of it was seen"
    return "" if run.failure is None else "the run failed: not all of it was seen"


def _numbers(run: Run, found: list[Diagnostic]) -> Case:
    if run.diff is None:
        return Case("numbers agree", skipped="it was not compared: idbg diff does")
    name = f"numbers agree with {run.diff.reference}'s"
    different = (*_of(found, "mismatch"), *_of(found, "change"))
    known = run.diff.verdict in ("passed", "failed")
    missing = remarks.sentence(run.diff.not_comparable) or "the comparison did not come to its end"
    return Case(name, different, "" if known or different else missing)


def _rules(run: Run, found: list[Diagnostic], unfinished: str) -> Iterator[Case]:
    """One case a rule: those of the file in its order, then what was broken and is not in it."""
    violations = _of(found, "violation")
    stages = {graph.stage for graph in run.graphs}
    listed = set()
    try:
        rules = parse(run.target.rules).rules
    except AcceleratorError as error:
        rules = ()
        yield Case("the accelerator's rules", skipped=f"they cannot be read: {error.message}")
    for rule in rules:
        if rule.name in listed:
            continue
        listed.add(rule.name)
        broken = tuple(each for each in violations if each.rule == rule.name)
        other = rule.stages and stages.isdisjoint(rule.stages)
        why = unfinished or ("" if run.checked else f"the backend {run.backend} asks no rules")
        why = why or ("" if stages else "no graph was captured")
        why = why or ("" if rule.enabled else "it is switched off")
        why = why or (f"it is about graphs of {', '.join(rule.stages)}, and there is none" if other else "")
        yield Case(_rule_name(run, rule.name), broken, "" if broken else why)
    for name in dict.fromkeys(each.rule for each in violations if each.rule not in listed):
        yield Case(_rule_name(run, name), tuple(each for each in violations if each.rule == name))


def _rule_name(run: Run, rule: str) -> str:
    accelerator = run.target.accelerator.rpartition("/")[2].removesuffix(".toml")
    return f"rule {rule} of {accelerator}"


def _without(run: Run, unfinished: str) -> str:
    return "" if run.breaks or run.recompiles else unfinished or ("" if run.frames else "no frame was compiled")


def _of(found: Iterable[Diagnostic], kind: str) -> tuple[Diagnostic, ...]:
    return tuple(each for each in found if each.kind == kind)


# XML


def element(tag: str, attributes: Mapping[str, object], *inside: Element | None, text: str | None = None) -> Element:
    """An element with those attributes that are known, and what is in it."""
    element = Element(tag, {name: str(value) for name, value in attributes.items() if value not in (None, "")})
    element.text = text
    element.extend(each for each in inside if each is not None)
    return element


def suite(name: str, inside: Sequence[Element | None], **attributes: object) -> Element:
    """A suite of the cases in it, with how many of them failed, had an error or were skipped."""
    listed = [each for each in inside if each is not None and each.tag == "testcase"]
    counts = {
        key: sum(case.find(tag) is not None for case in listed)
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    named = {"name": one_line(name, MOST_NAME), "tests": len(listed), **counts, **attributes}
    return element("testsuite", named, *inside)


def case_of(name: str, classname: str, *inside: Element | None, time: str = "") -> Element:
    """A case, with what came of it."""
    return element("testcase", {"name": one_line(name, MOST_NAME), "classname": classname, "time": time}, *inside)


def _suite(run: Run, history: History, number: int) -> Element:
    found = cases(run)
    began = f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%dT%H:%M:%S}" if 0 < run.started < 1e11 else ""
    printed = [_printed(run, stream, tag) for stream, tag in (("stdout", "system-out"), ("stderr", "system-err"))]
    return suite(
        f"{run.program.label} on {run.backend}, {rules_words(run.target)}",
        [_properties(run, history), *(_case(each, run) for each in found), *printed],
        id=number,
        time=_seconds(found[0]),
        timestamp=began,
    )


def _printed(run: Run, stream: str, tag: str) -> Element | None:
    """What a program printed, in characters that XML has: the end of it, where it is long."""
    text = "".join(event.text for event in run.output if event.stream == stream)
    kept = plain(text[-MOST_OUTPUT:])
    long = f"… of {len(text):,} characters the last:\n" if len(text) > MOST_OUTPUT else ""
    return element(tag, {}, text=long + kept) if text else None


def _seconds(case: Case) -> str:
    return "" if case.seconds is None else f"{case.seconds:.3f}"


def _benchmark(session: SessionData) -> Element:
    """What the benchmark found wrong: a suite of its own, with one case for all of its numbers."""
    wrong = of_benchmark(session.history)
    name = f"benchmark of {one_line(session.name, MOST_NAME) or 'idbg'}"
    checked = any(row.diff in ("passed", "failed") for row in session.history.rows)
    text = "\n".join(one_line(each.message, MOST_TEXT) for each in wrong[:MOST_FINDINGS])
    failed = element("failure", {"type": "mismatch: benchmark", "message": text.partition("\n")[0]}, text=text)
    skipped = element("skipped", {"message": "the numbers of no row were compared"})
    inside = failed if wrong else None if checked else skipped
    return suite(name, [case_of("numbers agree with eager's", name, inside)])


def _ranks(found: RankComparison) -> Element:
    """Whether ranks came to their end: a suite with one case. In what else they differ is in its output."""
    name = one_line(f"ranks of {found.program}", MOST_NAME)
    listed = of_ranks(found)
    stops = [each for each in listed if each.level == "error"]
    texts = ["\n".join(one_line(each.message, MOST_TEXT) for each in some[:MOST_FINDINGS]) for some in (stops, listed)]
    failed = element("failure", {"type": "rank", "message": texts[0].partition("\n")[0]}, text=texts[0])
    skipped = element("skipped", {"message": f"{counted(len(found.unseen), 'rank')} not seen"})
    inside = failed if stops else skipped if found.unseen else None
    noted = element("system-out", {}, text=texts[1]) if listed else None
    return suite(name, [case_of("each rank comes to its end", name, inside, noted)])


def _unranked(history: History) -> list[ProcessReport]:
    """The processes that the suite of the ranks does not have: those of no rank, and ranks that failed to compile."""
    found = in_order(history.processes.values())
    if history.ranks is None:
        return found
    ended = ended_ranks(history.ranks)
    return [each for each in found if each.rank is None or (of_processes([each]) and each.rank not in ended)]


def _processes(session: SessionData) -> Element:
    """What came of each process of a session whose main process compiled nothing: a suite with a case each."""
    name = f"processes of {one_line(session.name, MOST_NAME) or 'idbg'}"
    found = []
    for each in _unranked(session.history):
        failed = (
            element("skipped", {"message": "it is not known what came of it"}) if each.verdict == "waiting" else None
        )
        for wrong in of_processes([each]):
            text = one_line(wrong.message, MOST_TEXT)
            failed = element("failure", {"type": f"{wrong.kind}: {wrong.rule}", "message": text}, text=text)
        found.append(case_of(f"{each.name} compiles and runs", name, failed))
    return suite(name, found)


def _lacking(session: SessionData) -> Element:
    """What the session lacks may be what was wrong: a suite of its own, and an error."""
    name = one_line(session.name, MOST_NAME) or "idbg"
    missing = [one_line(text, MOST_TEXT) for text in session.history.missing[:MOST_FINDINGS]]
    error = element("error", {"type": "missing", "message": missing[0]}, text="\n".join(missing))
    return suite(name, [case_of("the session is whole", name, error)])


def _properties(run: Run, history: History) -> Element:
    known = {
        "verdict": verdict_words(run),
        "program": run.program.label,
        "backend": run.backend,
        "accelerator": run.target.accelerator,
        "device": run.target.device,
        "torch": history.worker.torch if history.worker else "",
        "python": history.worker.python if history.worker else "",
        "idbg": idbg.__version__,
    }
    named = ({"name": name, "value": one_line(value, MOST_NAME)} for name, value in known.items() if value)
    return element("properties", {}, *(element("property", each) for each in named))


def _case(case: Case, run: Run) -> Element:
    skipped = element("skipped", {"message": one_line(case.skipped, MOST_NAME)}) if case.skipped else None
    failed = None
    if case.errors:
        first = case.errors[0]
        more = f" (and {counted(len(case.errors) - 1, 'other')})" if len(case.errors) > 1 else ""
        kind = one_line(f"{first.kind}: {first.rule}", MOST_NAME)
        attributes = {"type": kind, "message": one_line(first.message, MOST_TEXT) + more}
        tag = "error" if case.broken else "failure"
        failed = element(tag, attributes, text="\n".join(_lines(case.errors, run)))
    rest = [each for each in case.found if each.level != "error"]
    noted = element("system-out", {}, text="\n".join(_lines(rest, run))) if rest else None
    return case_of(case.name, _class_name(run), skipped, failed, noted, time=_seconds(case))


def _class_name(run: Run) -> str:
    """ "examples.resnet.net" of examples/resnet.py:net: CIs part it at its points."""
    path = stable_file(run, run.program.path).removesuffix(".py").strip("./").replace("/", ".").replace("\\", ".")
    name = ".".join(part for part in (path, run.program.name) if part)
    return one_line(name, MOST_NAME) or "program"


def _lines(found: Iterable[Diagnostic], run: Run) -> Iterator[str]:
    """ "model.py:12: error: dtype is float64 ...", and what to do."""
    listed = list(found)
    for each in listed[:MOST_FINDINGS]:
        line = f":{each.line}" if each.line else ""
        place = f"{stable_file(run, each.file)}{line}: " if each.file else ""
        times = f" ({each.count:,} times)" if each.count > 1 and each.kind != "violation" else ""
        yield f"{one_line(place, MOST_NAME)} {each.level}: {one_line(each.message, MOST_TEXT)}{times}".strip()
        yield from (f"    {one_line(text, MOST_TEXT)}" for text in (each.detail, each.fix) if text)
    if len(listed) > MOST_FINDINGS:
        yield f"… and {counted(len(listed) - MOST_FINDINGS, 'other')}"
