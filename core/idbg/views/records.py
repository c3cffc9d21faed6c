"""Say of what a run has no record: "none" and "zero" are answers that a trace without such records does not give."""

from msgspec.structs import replace

from idbg.format.amounts import counted
from idbg.schema.decisions import reports
from idbg.schema.runs import Run
from idbg.views.tree import Section

WORDS = {"skips": "what Dynamo left alone", **{each.name: each.lacks for each in reports() if each.lacks}}
"""What each report, or what it has, is made of."""


def why(run: Run, name: str) -> str:
    """What the run's trace does not have of this report, as a sentence; "" where it has it."""
    return f"not recorded: the trace does not have {WORDS[name]}" if name in run.unrecorded else ""


def checked(section: Section, run: Run, name: str) -> Section:
    """The section; where it has nothing and the trace does not have what it is made of, one that says so."""
    if section.count or not (reason := why(run, name)):
        return section
    return replace(section, summary=reason, count=None, verdict="unknown")


def amount(run: Run, name: str, number: int) -> int | None:
    """How many there are; None where there are none because they are not recorded."""
    return number if number or name not in run.unrecorded else None


def amount_words(run: Run, name: str, number: int, noun: str) -> str:
    """ "2 guards", "guards not recorded"."""
    known = amount(run, name, number)
    return counted(known, noun) if known is not None else f"{counted(2, noun).partition(' ')[2]} not recorded"
