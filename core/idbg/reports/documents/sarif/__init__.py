"""Write a session as SARIF 2.1.0, which GitHub shows on the lines of a pull request.

One analysis, with a rule for each kind of thing that was found, and its results the worst first.
"""

import re
from collections import Counter
from urllib.parse import quote

import idbg
from idbg.format.amounts import counted
from idbg.format.plain_text import one_line, plain
from idbg.reports.documents import SessionData
from idbg.reports.documents.sarif import places
from idbg.schema import strict_json
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.views.diagnostics import KINDS, Diagnostic, DiagnosticKind, last_runs, of_history

Object = places.Object
ABOUT, SUFFIXES = "results on the lines of a pull request", (".sarif", ".sarif.json")
MOST_RESULTS = 5_000  # of one analysis: GitHub shows no more
NODES = 10  # of one result
_MOST_MISSING = 20  # sentences of what the session lacks
VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "idbgDiagnostic/v1"
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~%/:?#@!$&'()*+,;=-]{1,2000}")
_MOST_TITLE, _MOST_TEXT = 250, 1_000  # characters: GitHub takes 255 of a rule's name, 1024 of its descriptions

_ABOUT: dict[DiagnosticKind, tuple[str, str]] = {
    "failure": (
        "the program, torch or the backend failed",
        "What was to be compiled did not come to its end, or not all of it was compiled.",
    ),
    "mismatch": (
        "the compiled program gives other numbers",
        "An output or a gradient of the compiled program is further from the reference than its precision explains.",
    ),
    "change": (
        "a stage changes the numbers within rounding",
        "The outputs agree within rounding, but in float64 a stage of the compiler computes something else.",
    ),
    "rank": (
        "ranks of a job differ, or one stops",
        "A rank of a distributed job fails, waits for another one, or compiles something else than the others.",
    ),
    "violation": (
        "the accelerator's rule is broken",
        "The accelerator's file has a rule that these nodes of the captured graphs break.",
    ),
    "break": (
        "the graph breaks here",
        "torch.compile ends the graph at this line: what follows is a graph of its own, or runs in Python.",
    ),
    "recompile": (
        "this is compiled again",
        "A guard on this value failed at a later call, and torch.compile compiled the function once more.",
    ),
}


def render(session: SessionData) -> bytes:
    """The log as strict JSON."""
    return strict_json.formatted(log(session), indent=1) + b"\n"


def log(session: SessionData) -> Object:
    """The session's last run for each target, as one analysis."""
    runs = last_runs(session.history)
    found = of_history(session.history)
    root = places.root_of(runs)
    rules = {_rule_id(each): each for each in reversed(found)}  # the worst of each
    ids = sorted(rules, key=lambda name: (KINDS.index(rules[name].kind), name))
    numbers = {name: number for number, name in enumerate(ids)}
    by_label = {run.program.label: run for run in runs}
    results = [
        _result(each, numbers[_rule_id(each)], by_label.get(each.program), root) for each in found[:MOST_RESULTS]
    ]
    driver = {
        "name": "idbg",
        "fullName": "idbg, a debugger for torch.compile",
        "semanticVersion": idbg.__version__,
        "rules": [_rule(name, rules[name]) for name in ids],
    }
    analysis = {
        "tool": {"driver": driver},
        "invocations": [_invocation(runs, found[MOST_RESULTS:], session.history.missing)],
        "originalUriBaseIds": {places.ROOT: places.base(root)},
        "automationDetails": {"id": _category(runs)},
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [analysis]}


def _category(runs: list[Run]) -> str:
    """The same for the same programs, whatever came of them: GitHub replaces what it had of this name."""
    labels = list(dict.fromkeys(run.program.label for run in runs))
    names = "+".join(quote(one_line(label, 80), safe="") for label in labels[:3])
    return f"idbg/{names}{f'+{len(labels) - 3}' if len(labels) > 3 else ''}/" if names else "idbg/"


def _rule_id(found: Diagnostic) -> str:
    """ "violation/mock/alignment", "break/Data-dependent branching"."""
    accelerator = found.accelerator.rpartition("/")[2].removesuffix(".toml")
    parts = (found.kind, accelerator, found.rule) if found.kind == "violation" else (found.kind, found.rule)
    return one_line("/".join(part for part in parts if part), _MOST_TITLE)


def _rule(name: str, found: Diagnostic) -> Object:
    title, explained = _ABOUT[found.kind]
    rule = one_line(found.rule, _MOST_TITLE)
    short = f"{title}: {rule}" if found.kind in ("violation", "break") else title
    help_lines = [explained]
    if found.accelerator:
        help_lines.append(f"The rule is {rule} of the accelerator {one_line(found.accelerator, _MOST_TITLE)}.")
    if found.help:
        help_lines.append(f"It rests on {one_line(found.help, _MOST_TEXT)}")
    help_lines.append("idbg open SESSION shows the graph, its nodes and what became of them.")
    tags = ("torch.compile", found.kind)
    return {
        "id": name,
        "name": _camel(found.kind, rule),
        "shortDescription": {"text": one_line(short, _MOST_TEXT)},
        "fullDescription": {"text": one_line(explained, _MOST_TEXT)},
        "help": {"text": "\n\n".join(help_lines)},
        "defaultConfiguration": {"level": found.level},
        **({"helpUri": found.help} if _ADDRESS.fullmatch(found.help) else {}),
        "properties": {"tags": tags, "precision": "very-high", "problem.severity": _SEVERITY[found.level]},
    }


_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}


def _camel(kind: str, rule: str) -> str:
    """A rule's name as SARIF has it: "ViolationAlignment"."""
    words = "".join(char if char.isalnum() else " " for char in f"{kind} {rule}").split()
    return "".join(word[:1].upper() + word[1:] for word in words)[:_MOST_TITLE]


def _result(found: Diagnostic, rule: int, run: Run | None, root: str) -> Object:
    shown, *elsewhere = places.location(found, run, root)
    logical = [_logical(node) for node in found.nodes[:NODES]]
    text = plain(found.message[: 4 * _MOST_TEXT]).strip() or found.kind
    if elsewhere:
        text += f" (at {one_line(found.file, _MOST_TITLE)}:{found.line})"
    text += "".join(f"\n{plain(each[:_MOST_TEXT])}" for each in (found.detail, found.fix) if each)
    if found.count > 1 and found.kind != "violation":
        text += f"\nIt happened {found.count:,} times."
    properties = {"program": one_line(found.program)}
    if found.accelerator:
        properties |= {"accelerator": one_line(found.accelerator), "severity": found.severity}
    return {
        "ruleId": _rule_id(found),
        "ruleIndex": rule,
        "level": found.level,
        "message": {"text": _no_links(text)[: 4 * _MOST_TEXT]},
        "locations": [shown | ({"logicalLocations": logical} if logical else {})],
        **({"relatedLocations": elsewhere} if elsewhere else {}),
        "partialFingerprints": {FINGERPRINT: found.key},
        "occurrenceCount": found.count,
        "properties": properties,
    }


def _no_links(text: str) -> str:
    """A message's "[text](target)" is a link to readers of SARIF, and a program's text is none."""
    return text.replace("](", "] (")


def _logical(node: NodeId) -> Object:
    name = one_line(node.name, _MOST_TITLE)
    return {"name": name, "fullyQualifiedName": f"{one_line(str(node.graph), 80)}: {name}", "kind": "object"}


def _invocation(runs: list[Run], left_out: list[Diagnostic], missing: list[str]) -> Object:
    """Whether there were runs, each came to its end and is here as a whole, and what else is to be known."""
    texts = [one_line(text, _MOST_TEXT) for text in missing[:_MOST_MISSING]]
    texts += [] if runs else ["no program was run: nothing was checked"]
    if left_out:
        levels = Counter(each.level for each in left_out)
        words = ", ".join(counted(number, level) for level, number in levels.items())
        text = f"{counted(len(left_out), 'result')} are left out, none worse than those listed: {words}. "
        texts.append(text + "The JSON report has all of them.")
    unfinished = [run for run in runs if run.verdict == "waiting"]
    for run in unfinished:
        program = one_line(run.program.label)
        texts.append(f"run {run.number} of {program} did not come to its end: what it had by then is here")
    broken = [run for run in runs if run.failure is not None and run.failure.kind in ("idbg", "worker", "input")]
    notes = [{"level": "warning", "message": {"text": text}} for text in texts]
    successful = bool(runs) and not (unfinished or broken or missing)
    return {"executionSuccessful": successful, "toolExecutionNotifications": notes}
