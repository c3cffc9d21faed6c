"""Write a backend's conformance as a page that its author can publish, or as JUnit XML."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal
from xml.etree.ElementTree import Element

from idbg.format.plain_text import one_line
from idbg.reports.documents import junit
from idbg.schema.conformance import Conformance, ConformanceRow
from idbg.views import conformance as view


def html(found: Sequence[Conformance]) -> bytes:
    """One page that opens anywhere, without a network: each backend's tables, and the script of each failure."""
    from markupsafe import Markup

    from idbg.render import html as render
    from idbg.render.html.code import highlighted
    from idbg.reports.documents.html.page import page_of
    from idbg.reports.documents.html.sections import Filled

    shown = []
    for each in found:
        section = view.view(each)
        shown.append(Filled(section.title, f"conformance-{each.backend}", render.section(section, None, "program")))
        scripts = [(view.name_of(row.program), text) for row in each.rows if (text := script_text(row))]
        if scripts:
            listing = Markup("<details><summary>{}</summary><pre><code>{}</code></pre></details>")
            body = Markup("\n").join(listing.format(name, highlighted(text)) for name, text in scripts)
            shown.append(Filled(f"Scripts of {each.backend}'s failures", f"scripts-{each.backend}", body))
    names = " ".join(each.backend for each in found)
    return page_of(f"Conformance of {names}", shown, f"idbg conform {names} --html conformance.html").encode()


def script_text(row: ConformanceRow) -> str:
    """The text of the row's script; "" where there is none, or it cannot be read any more."""
    if row.script is None or not row.script.path:
        return ""
    try:
        with open(row.script.path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def as_junit(found: Sequence[Conformance]) -> bytes:
    """A suite a family, a case a program; what is not judged and what was not run is skipped, with why."""
    names = " ".join(each.backend for each in found)
    return junit.file_of([suite for each in found for suite in _suites(each)], f"conformance of {names}")


def _suites(found: Conformance) -> list[Element]:
    suites = []
    for family, group in groupby(found.rows, lambda row: row.program.family):
        rows = list(group)
        seconds = f"{sum(row.seconds for row in rows):.3f}"
        suites.append(junit.suite(f"{found.backend}: {family}", [_case(row, found) for row in rows], time=seconds))
    skipped = junit.element("skipped", {"message": "it was not run"})
    left = [junit.case_of(view.name_of(each), found.backend, skipped) for each in view.missing(found)]
    suites += [junit.suite(f"{found.backend}: not run", left)] if left else []
    if (problem := found.problem) is not None:
        message = one_line(problem.message, junit.MOST_TEXT)
        error = junit.element("error", {"type": problem.type or problem.kind, "message": message})
        suites.append(junit.suite(found.backend, [junit.case_of("the backend can be used", found.backend, error)]))
    return suites


def _outcome(row: ConformanceRow) -> Literal["", "failure", "error", "skipped"]:
    """JUnit's failure is of the numbers, its error of a program that does not run to its end."""
    if row.grade == "failed":
        return "error" if row.cause is not None else "failure"
    return "" if row.grade == "passed" else "skipped"


def _case(row: ConformanceRow, found: Conformance) -> Element:
    outcome = _outcome(row)
    inside = None
    if outcome:
        message = one_line(view.reason(row), junit.MOST_TEXT)
        inside = junit.element("skipped", {"message": message})
    if outcome in ("failure", "error"):
        lines = [view.reason(row), f"owner: {view.owner(row, found)}"]
        lines += [f"script: {row.script.path}"] if row.script is not None and row.script.path else []
        kind = row.cause.type if row.cause is not None else "wrong numbers"
        text = one_line("; ".join(lines), junit.MOST_TEXT)
        inside = junit.element(outcome, {"type": kind, "message": message}, text=text)
    return junit.case_of(view.name_of(row.program), found.backend, inside, time=f"{row.seconds:.3f}")
