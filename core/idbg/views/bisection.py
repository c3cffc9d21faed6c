"""Describe the result of a bisection: the sentences of the CLI, the JSON and the screen."""

import difflib
import re

from idbg.format.amounts import counted
from idbg.format.failures import lowering_words
from idbg.format.file_names import near_place
from idbg.schema import strict_json
from idbg.schema.bisection import (
    PYTHON,
    Bisected,
    FailingCommit,
    FailingOptions,
    Outcome,
    SuspectPart,
    Tried,
)
from idbg.views import remarks
from idbg.views.tree import Block, Cell, Column, Row, Section, Table, words

SCHEMA = "idbg.bisect/1"
OUTCOMES: dict[Outcome, str] = {"fails": "fails", "passes": "does not fail", "other": "fails otherwise"}
"""What a try came to, after what was tried."""
_BACKENDS = {
    PYTHON: "the program itself is the cause: it fails without torch.compile too",
    "eager": "Dynamo is the cause: it fails with the backend eager, which compiles nothing",
    "aot_eager": "AOTAutograd is the cause: it fails with the backend aot_eager, which runs what it traces",
    "aot_eager_decomp_partition": "AOTAutograd is the cause: it fails with decompositions and partitioner alone, "
    "without Inductor",
    "aot_eager_decomp_partition_crossref": "an op's fake is the cause: it fails where each is compared with the op",
}
_TRIES = (Column("outcome", rank=2), Column("time", "seconds"))
_PLURALS = {"decomposition": "decompositions"}  # torch's own name of the part is in the singular
_OP = re.compile(r"<OpOverload\(op='([\w.:]+)', overload='(\w+)'\)>")
_REST = "its scheduler, its code or its compiler"


def part_sentence(part: SuspectPart) -> str:
    """Which part of the compiler causes the failure."""
    where = f" on the graph of frame {part.frame} (of {counted(part.graphs, 'graph')})" if part.frame else ""
    if part.lowering is not None:
        return f"{lowering_words(part.lowering, near_place)}, is the cause: it raises the failure itself"
    if not part.subsystem:
        if part.backend == "inductor":
            return f"inductor is the cause{where}, and no part of it that torch can switch off: {_REST}"
        who = _BACKENDS.get(part.backend, f"the backend {part.backend} is the cause")
        return f"{who}, as {part.otherwise}" if part.otherwise else who
    if part.setting:
        setting = f"where {part.setting} is not {part.value!r}: with that it does not fail"
        return f"{part.backend} is the cause{where}, {setting}"
    whole = f"the {_PLURALS.get(part.subsystem, part.subsystem)} of {part.backend} are the cause"
    one = part.application
    if one is None:
        return f"{whole}{where}: without them it does not fail"
    which = f"{one.number:,}" if part.first >= one.number else f"one of {part.first:,} to {one.number:,}"
    what = f", {_named(one.what)}" if one.what else ""
    on = f", on the {one.graph} graph of frame {one.frame}" if one.frame else ""
    return f"{whole}: application {which} of {part.of:,}{what}{on}"


def _named(what: str) -> str:
    """What torch says of an application: an op by its name, and not as Python prints the object."""
    return _OP.sub(lambda match: f"{match[1]}.{match[2]}", what)


def _so_far(part: SuspectPart) -> str:
    """What is known of a search that was stopped: its backend may fail by a part that was not tried yet."""
    if part.subsystem or part.lowering is not None:
        return part_sentence(part)
    if part.backend in (PYTHON, "eager", "aot_eager"):
        return _BACKENDS[part.backend]
    return f"it is in {part.backend}, and which part of that is not known yet"


def options_sentence(found: FailingOptions) -> str:
    """Which options make it fail."""
    names = [one.failing_text for one in found.options]
    among = f" (of {counted(found.among, 'difference')})" if found.among > len(names) else ""
    if not found.minimal:
        return f"so far it fails with {', '.join(names)}{among}"
    if len(names) == 1:
        one = found.options[0]
        passing = "" if one.unset or one.failing is None else f"; with {one.name}={one.passing!r} it does not"
        return f"it fails with {names[0]} alone{among}{passing}"
    return f"it fails only with {', '.join(names[:-1])} and {names[-1]} together{among}"


def commit_sentence(found: FailingCommit) -> str:
    """Which commit is the first that fails."""
    among = f" (of {counted(found.among, 'commit')})" if found.among > 1 else ""
    if len(found.commits) == 1:
        one = found.commits[0]
        return f"{one.sha[:10]} is the first commit that fails{among}: {one.subject}"
    return f"one of {counted(len(found.commits), 'commit')} is the first that fails{among}: which is not known"


def answer_sentence(found: Bisected) -> str:
    """The answer in a sentence."""
    if found.sentence:  # of a session that an older idbg wrote
        return found.sentence
    sentence = _answer(found)
    return f"stopped after {counted(len(found.tried), 'try')}: {sentence}" if found.stopped else sentence


def _answer(found: Bisected) -> str:
    if found.note:
        return remarks.sentence(found.note)
    if found.part is not None:
        return _so_far(found.part) if found.stopped else part_sentence(found.part)
    if found.question == "fuzz":
        number = len(found.options)
        draws = sum(1 for one in found.tried if one.what.startswith("draw "))
        return f"{number:,} of {counted(draws, 'drawn option set')} {'makes' if number == 1 else 'make'} it fail"
    if found.options:
        return options_sentence(found.options[0])
    if found.commit is not None:
        return commit_sentence(found.commit)
    if found.stopped:
        return "nothing is known yet"
    return "it does not fail, and its numbers agree with eager's: there is nothing to find"


def view(found: Bisected) -> Section:
    """The answer, what it stands on, then a row a try."""
    body: list[Block] = []
    if found.words and found.question != "fuzz":
        body.append(Row("failure", words(f"  the failure: {found.words}")))
    if found.part is not None and found.part.before:
        title, code = _around(found.part)
        body.append(Row("graph", words(title), code=code))
    for number, one in enumerate(found.options if found.question == "fuzz" else ()):
        body.append(Row(("options", number), words(f"  {options_sentence(one)}: {one.words}")))
    for commit in found.commit.commits if found.commit is not None else ():
        known = f"Author: {commit.author}\nDate:   {commit.date}\n\n    {commit.subject}\n\n{commit.stat}"
        body.append(Row(commit.sha, words(f"commit {commit.sha}"), code=known if commit.author else ""))
    if found.tried:
        body.append(Table(_TRIES, [_try(one, number) for number, one in enumerate(found.tried)], "try"))
    total = Row("total", words(f"{counted(len(found.tried), 'try')}, {found.seconds:.0f} s"))
    return Section("Bisection", answer_sentence(found), len(found.tried), body=(*body, total))


def _try(one: Tried, number: int) -> Row:
    below = [Row((number, "otherwise"), words((one.otherwise, "dim")))] if one.otherwise else []
    return Row(("try", number), words(one.what), (Cell(OUTCOMES[one.outcome]), Cell(one.seconds)), below, open="text")


def _around(part: SuspectPart) -> tuple[str, str]:
    """The graph around the failing application, as what it changed."""
    before, after = part.before.splitlines(), part.after.splitlines()
    if not part.after:
        return "the graph that it was applied to:", part.before.strip("\n")
    if part.before == part.after:
        return "the graph that it was applied to, which it left as it is:", part.before.strip("\n")
    diff = difflib.unified_diff(before, after, "before", "after", lineterm="", n=len(before))
    return "what it changed of the graph:", "\n".join(diff)


def as_json(found: Bisected) -> dict[str, object]:
    """The record with every key, and the answer as a sentence."""
    own = {"note": remarks.sentence(found.note), "sentence": answer_sentence(found)}
    return {"schema": SCHEMA, **strict_json.every_key(found), **own}
