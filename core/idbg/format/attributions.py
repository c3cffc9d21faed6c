"""Write the cause of a launch's error as a sentence."""

from idbg.format.amounts import figure
from idbg.schema.attribution import AttributionFinding, AttributionFindingKind, AttributionKind, KernelAttribution

_CAUSES: dict[AttributionKind, str] = {
    "compiler": "the compiler's: ",
    "before": "what came before: ",
    "graph": "the graph's: ",
    "precision": "the precision's: ",
    "nobody": "nobody's: ",
    "unjudged": "whose error {label} has is not known: ",
}
_FINDINGS: dict[AttributionFindingKind, str] = {
    "step of a node": "it computes a step of {node}, judged with {launch}: ",
    "unknown": "{detail}",
    "wrong alone": "called alone on its own inputs {label} is wrong: {figures}, in {buffer} ({node})",
    "leftover": "; what it gives depends on what was in its memory before: it leaves some of it unwritten, or reads "
    "what nobody wrote",
    "race": "; the same call gives something else each time, as a race does",
    "some calls right": "; {detail} calls were right",
    "or of a step": "; or that of {launch}: it wrote {buffer}, a step inside of a node, and the two are one here",
    "right alone": "alone, on what it was called with, {label} is right ({figures})",
    "read as left": ", but {buffer}, which it reads, was no longer as {launch} left it",
    "read as given": ", but {buffer}, which it reads, was no longer as the graph was given it",
    "written, read": ", but {buffer}, which it wrote, was no longer as it left it when {launch} read it",
    "written, returned": ", but {buffer}, which it wrote, was no longer as it left it when the graph returned it",
    "by the wrapper": ": the wrapper itself changed it, between line {detail}",
    "by reuse": ": {launch} wrote over it: {buffer} was given its memory too early ({detail}  # reuse)",
    "by sharing": ": {launch} wrote over it: its arguments share memory with it",
    "memory in use": ", but the wrapper gives {buffer}, which it writes, the memory of {node}, which {launch} reads "
    "after it",
    "out of bounds": ": {launch} wrote outside of its own memory, over it",
    "other in the run": ", but in the run it left something else in {buffer} (relative error {error}): another launch "
    "was still running, or its memory is in use elsewhere",
    "reads wrong": ", but what it reads is already wrong: {launch} before it is bad",
    "called with wrong": ", but what its graph was called with is already wrong: {launch} before it is bad",
    "wrong graph": "; its graph is wrong at {detail}",
    "wrong graph at": "; its graph is wrong since {detail}: `{node}`",
    "eager as far": ", and eager's own is as far: what its nodes compute loses that much in this dtype",
    "gathered": ", and what had gathered by then (relative error {error}) eager's has too ({eager})",
    "not again": ", and it was right as the program ran again: what the comparison saw has not come again",
    "right in the run": ", and right in the run",
}


def sentence(found: KernelAttribution) -> str:
    """The cause, and what it rests on; sessions of older versions have the sentence."""
    if found.sentence:
        return found.sentence
    before = [each for each in found.findings if each.kind == "step of a node"]
    rest = [each for each in found.findings if each.kind != "step of a node"]
    cause = _CAUSES[found.kind].format(label=found.label)
    return "".join((*(_words(each, found) for each in before), cause, *(_words(each, found) for each in rest)))


def _words(finding: AttributionFinding, found: KernelAttribution) -> str:
    error, eager = figure(finding.error), figure(finding.eager_error)
    return _FINDINGS[finding.kind].format(
        label=found.label,
        launch=finding.launch,
        buffer=finding.buffer,
        node=finding.node,
        detail=finding.detail,
        error=error,
        eager=eager,
        figures=f"its relative error against float64 is {error}, eager's {eager}",
    )
