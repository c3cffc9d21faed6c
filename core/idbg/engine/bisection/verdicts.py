"""Describe how a run failed, so that equal failures can be recognized."""

from idbg.engine.repro.error_message import fragment, shortened
from idbg.schema.bisection import Answer
from idbg.schema.diff import DiffReport
from idbg.schema.programs import Failure
from idbg.schema.repros import Signature
from idbg.schema.runs import Run

_LINE = 200  # characters of a message


def answer_of(run: Run, *, uncompiled: bool) -> Answer:
    """The answer of a run. `uncompiled`: nothing is to be compiled, so that compiling nothing is no failure."""
    failure = run.cause
    if failure is not None and failure.kind == "input":
        if uncompiled and not run.frames:
            return Answer()
        return Answer(cannot=_line(failure.message))
    if run.diff is not None and run.diff.verdict == "failed":
        return Answer(Signature("wrong"), words=_wrong(run.diff), compiled=True)
    if failure is not None:
        own = failure.lowering if failure.kind == "user" else None
        return Answer(_signature(failure), words=_words(failure), lowering=own, compiled=bool(run.frames))
    if run.exit_status:
        words = f"the script ends with exit status {run.exit_status}"
        return Answer(Signature("check", type=f"exit status {run.exit_status}"), words=words, compiled=bool(run.frames))
    return Answer(compiled=bool(run.frames))


def _signature(failure: Failure) -> Signature:
    return Signature(
        "runtime" if failure.kind == "user" else "compile",
        type=failure.type,
        message=fragment(shortened(failure.message)),
    )


def _words(failure: Failure) -> str:
    line = _line(failure.message)
    return line if line.startswith(failure.type) else f"{failure.type}: {line}".removesuffix(": ")


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LINE else first[: _LINE - 4] + " ..."


def _wrong(report: DiffReport) -> str:
    failed = [one for one in (*report.outputs, *report.gradients) if one.failed]
    if not failed:
        return "its numbers are wrong"
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"wrong numbers in {failed[0].name}{more}"
