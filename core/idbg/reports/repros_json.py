"""Write repros and minifications as JSON. docs/json-schema.md documents the keys.

Every key is always there; what is not known is null, "" or an empty list.
"""

from typing import Literal

import msgspec

from idbg.schema.programs import Failure, Program, Target
from idbg.schema.repros import Minified, Signature
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.strict_json import like
from idbg.schema.violations import Violation
from idbg.views.repros import result_words, signature_words, sought_words, status_words, tried_words

MINIFY, REPROS = "idbg.minify/1", "idbg.repros/1"


class SignatureReport(Signature, frozen=True, kw_only=True, omit_defaults=False):
    """What makes two failures the same one; `said` in words."""

    said: str


class FoundReport(Minified, frozen=True, kw_only=True, omit_defaults=False):
    """What a search came to; `said` in one line."""

    said: str
    signature: SignatureReport


class ReproReport(msgspec.Struct, frozen=True, kw_only=True):
    """One script of a session; `age` in seconds, as the report was made."""

    run: int
    origin: Literal["written", "minified", "strict", "kernel"]
    what: str
    rule: str
    node: str
    stage: str
    status: str
    said: str
    path: str
    reproduced: bool | None
    exit_status: int | None
    printed: str
    seconds: float
    at: float
    stopped: bool
    error: Failure | None
    found: FoundReport | None


class MinifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """`idbg minify`: the program, the target, and the search; `repro` is null where nothing fails."""

    schema: str
    program: Program
    target: Target
    verdict: str
    repro: ReproReport | None


class NumberedViolation(msgspec.Struct, frozen=True, kw_only=True):
    """One violation by the number that `--violation` takes."""

    number: int
    rule: str
    severity: str
    stage: str
    frame: str
    node: str
    found: str
    wanted: str
    file: str
    line: int


class ReprosReport(msgspec.Struct, frozen=True, kw_only=True):
    """`idbg repro`: a session's violations and repros, or, with `repro`, the one that was written."""

    schema: str
    program: Program
    target: Target
    violations: list[NumberedViolation]
    repros: list[ReproReport]
    repro: ReproReport | None


def minify_report(run: Run, repro: SessionRepro | None) -> MinifyReport:
    """The report of a search in a run; of None, that nothing fails."""
    return like(MinifyReport, run, schema=MINIFY, repro=None if repro is None else repro_report(repro))


def repros_report(run: Run, repros: list[SessionRepro], repro: SessionRepro | None = None) -> ReprosReport:
    """The report of a session whose last run this is."""
    return like(
        ReprosReport,
        run,
        schema=REPROS,
        violations=[_violation(number, each) for number, each in enumerate(run.violations, 1)],
        repros=[repro_report(each) for each in repros],
        repro=None if repro is None else repro_report(repro),
    )


def repro_report(repro: SessionRepro) -> ReproReport:
    """One script of a session that is over."""
    node, status = repro.sought.node, status_words(repro, live=False)
    return like(
        ReproReport,
        repro,
        what=sought_words(repro.sought),
        rule=repro.sought.rule,
        node=node.name if node else "",
        stage=node.graph.stage if node else "",
        status=status,
        said=tried_words(repro) if repro.ended else status,
        exit_status=repro.status,
        error=repro.failure,
        found=_found(repro.minified),
    )


def _found(found: Minified | None) -> FoundReport | None:
    if found is None:
        return None
    signature = like(SignatureReport, found.signature, said=signature_words(found.signature))
    return like(FoundReport, found, signature=signature, said=result_words(found))


def _violation(number: int, violation: Violation) -> NumberedViolation:
    graph, node = violation.node.graph, violation.node.name
    return like(NumberedViolation, violation, number=number, stage=graph.stage, frame=graph.frame, node=node)
