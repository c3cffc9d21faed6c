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
        outcomes = [_outcome(row) for row in rows]
        counts = {
            "name": one_line(f"{found.backend}: {family}", junit.MOST_NAME),
            "tests": len(rows),
            "failures": outcomes.count("failure"),
            "errors": outcomes.count("error"),
            "skipped": outcomes.count("skipped"),
            "time": f"{sum(row.seconds for row in rows):.3f}",
        }
        suites.append(junit.element("testsuite", counts, *(_case(row, found) for row in rows)))
    left = view.missing(found)
    if left:
        skipped = [
            junit.element(
                "testcase",
                {"name": view.name_of(each), "classname": found.backend},
                junit.element("skipped", {"message": "it was not run"}),
            )
            for each in left
        ]
        counts = {
            "name": f"{found.backend}: not run",
            "tests": len(left),
            "failures": 0,
            "errors": 0,
            "skipped": len(left),
        }
        suites.append(junit.element("testsuite", counts, *skipped))
    if found.problem is not None:
        message = {
            "type": found.problem.type or found.problem.kind,
            "message": one_line(found.problem.message, junit.MOST_TEXT),
        }
        case = junit.element(
            "testcase", {"name": "the backend can be used", "classname": found.backend}, junit.element("error", message)
        )
        counts = {"name": found.backend, "tests": 1, "failures": 0, "errors": 1, "skipped": 0}
        suites.append(junit.element("testsuite", counts, case))
    return suites


def _outcome(row: ConformanceRow) -> Literal["", "failure", "error", "skipped"]:
    """JUnit's failure is of the numbers, its error of a program that does not run to its end."""
    if row.grade == "failed":
        return "error" if row.cause is not None else "failure"
    return "" if row.grade == "passed" else "skipped"


def _case(row: ConformanceRow, found: Conformance) -> Element:
    outcome = _outcome(row)
    names = {"name": view.name_of(row.program), "classname": found.backend, "time": f"{row.seconds:.3f}"}
    if not outcome:
        return junit.element("testcase", names)
    message = one_line(view.reason(row), junit.MOST_TEXT)
    if outcome == "skipped":
        return junit.element("testcase", names, junit.element("skipped", {"message": message}))
    lines = [view.reason(row), f"owner: {view.owner(row, found)}"]
    lines += [f"script: {row.script.path}"] if row.script is not None and row.script.path else []
    kind = row.cause.type if row.cause is not None else "wrong numbers"
    failed = junit.element(
        outcome, {"type": kind, "message": message}, text=one_line("; ".join(lines), junit.MOST_TEXT)
    )
    return junit.element("testcase", names, failed)
