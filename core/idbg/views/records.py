"""Say of what a run has no record: "none" and "zero" are answers that a trace without such records does not give."""

from collections.abc import Sequence

from msgspec.structs import replace

from idbg.format.amounts import counted
from idbg.schema.decisions import reports
from idbg.schema.runs import Run
from idbg.views.tree import Section

WORDS = {"skips": "what Dynamo left alone", **{each.record: each.record_words for each in reports() if each.record}}
"""What each kind of record is of."""


def lacks(run: Run, needs: Sequence[str]) -> list[str]:
    """Those of these records that the run's trace does not have."""
    return [record for record in needs if record in run.unrecorded]


def why(run: Run, needs: Sequence[str]) -> str:
    """What is not recorded, as a sentence; "" where all is."""
    lacking = [WORDS[record] for record in lacks(run, needs)]
    return f"not recorded: the trace does not have {' or '.join(lacking)}" if lacking else ""


def checked(section: Section, run: Run, needs: Sequence[str]) -> Section:
    """The section; where it has nothing and needs records that the trace does not have, one that says so."""
    if not run.unrecorded or section.count or not (reason := why(run, needs)):
        return section
    return replace(section, summary=reason, count=None, verdict="unknown")


def amount(run: Run, record: str, number: int) -> int | None:
    """How many there are; None where there are none because they are not recorded."""
    return number if number or record not in run.unrecorded else None


def amount_words(run: Run, record: str, number: int, noun: str) -> str:
    """ "2 guards", "guards not recorded"."""
    known = amount(run, record, number)
    return counted(known, noun) if known is not None else f"{counted(2, noun).partition(' ')[2]} not recorded"
