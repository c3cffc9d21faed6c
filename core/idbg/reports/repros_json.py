"""Write repros and minifications as JSON. docs/json-schema.md documents the keys.

Every key is always there; what is not known is null, "" or an empty list.
"""

from idbg.schema.repros import Minified, Signature
from idbg.schema.runs import Run
from idbg.schema.session_repros import SessionRepro
from idbg.schema.strict_json import like
from idbg.schema.violations import Violation
from idbg.schema.written import Written, keys_of, written
from idbg.views.repros import result_words, signature_words, sought_words, status_words, tried_words

MINIFY, REPROS = "idbg.minify/1", "idbg.repros/1"


class SignatureReport(Signature, frozen=True, kw_only=True, omit_defaults=False):
    """What makes two failures the same one; `said` in words."""

    said: str


class FoundReport(Minified, frozen=True, kw_only=True, omit_defaults=False):
    """What a search came to; `said` in one line."""

    said: str
    signature: SignatureReport


@keys_of(
    SessionRepro,
    "run origin what rule=sought.rule node stage status said path reproduced exit_status=status printed seconds at "
    "stopped error=failure found",
)
class ReproReport(Written, frozen=True):
    """One script of a session; `at` in seconds since the epoch."""

    what: str
    node: str
    stage: str
    status: str
    said: str
    found: FoundReport | None


@keys_of(Run, "schema program target verdict repro")
class MinifyReport(Written, frozen=True):
    """`idbg minify`: the program, the target, and the search; `repro` is null where nothing fails."""

    schema: str
    repro: ReproReport | None


@keys_of(
    Violation,
    "number rule severity stage=node.graph.stage frame=node.graph.frame node=node.name found wanted file line",
)
class NumberedViolation(Written, frozen=True):
    """One violation by the number that `--violation` takes."""

    number: int


@keys_of(Run, "schema program target violations repros repro")
class ReprosReport(Written, frozen=True):
    """`idbg repro`: a session's violations and repros, or, with `repro`, the one that was written."""

    schema: str
    violations: list[NumberedViolation]
    repros: list[ReproReport]
    repro: ReproReport | None


def minify_report(run: Run, repro: SessionRepro | None) -> MinifyReport:
    """The report of a search in a run; of None, that nothing fails."""
    return written(MinifyReport, run, schema=MINIFY, repro=None if repro is None else repro_report(repro))


def repros_report(run: Run, repros: list[SessionRepro], repro: SessionRepro | None = None) -> ReprosReport:
    """The report of a session whose last run this is."""
    return written(
        ReprosReport,
        run,
        schema=REPROS,
        violations=[written(NumberedViolation, each, number=at) for at, each in enumerate(run.violations, 1)],
        repros=[repro_report(each) for each in repros],
        repro=None if repro is None else repro_report(repro),
    )


def repro_report(repro: SessionRepro) -> ReproReport:
    """One script of a session that is over."""
    node, status = repro.sought.node, status_words(repro, live=False)
    return written(
        ReproReport,
        repro,
        what=sought_words(repro.sought),
        node=node.name if node else "",
        stage=node.graph.stage if node else "",
        status=status,
        said=tried_words(repro) if repro.ended else status,
        found=_found(repro.minified),
    )


def _found(found: Minified | None) -> FoundReport | None:
    if found is None:
        return None
    signature = like(SignatureReport, found.signature, said=signature_words(found.signature))
    return like(FoundReport, found, signature=signature, said=result_words(found))
