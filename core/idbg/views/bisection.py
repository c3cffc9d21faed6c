"""Describe the result of a bisection: the sentences of the CLI, the JSON and the screen."""

import difflib
import re
from collections.abc import Iterator

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
)
from idbg.views import remarks

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


def summary(found: Bisected) -> str:
    """The answer as text: the sentence, what it stands on, and the tries that failed otherwise."""
    return "\n".join(_lines(found))


def _lines(found: Bisected) -> Iterator[str]:
    yield answer_sentence(found)
    if found.words and found.question != "fuzz":
        yield f"  the failure: {found.words}"
    if found.part is not None:
        yield from _around(found.part)
    for one in found.options if found.question == "fuzz" else ():
        yield f"  {options_sentence(one)}: {one.words}"
    for commit in found.commit.commits if found.commit is not None else ():
        yield ""
        yield f"commit {commit.sha}"
        if commit.author:
            yield from (f"Author: {commit.author}", f"Date:   {commit.date}", "", f"    {commit.subject}", "")
            yield commit.stat
    if found.others:
        yield ""
        yield f"{counted(len(found.others), 'try')} failed otherwise, and decided nothing:"
        yield from (f"  {one.what}: {one.otherwise}" for one in found.others[:10])
    yield ""
    yield f"{counted(len(found.tried), 'try')}, {found.seconds:.0f} s"


def _around(part: SuspectPart) -> Iterator[str]:
    """The graph around the failing application, as what it changed."""
    if not part.before:
        return
    yield ""
    if not part.after:
        yield "the graph that it was applied to:"
        yield part.before.strip("\n")
    elif part.before == part.after:
        yield "the graph that it was applied to, which it left as it is:"
        yield part.before.strip("\n")
    else:
        before, after = part.before.splitlines(), part.after.splitlines()
        yield "what it changed of the graph:"
        yield from list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=len(before)))


def as_json(found: Bisected) -> dict[str, object]:
    """The record with every key, and the answer as a sentence."""
    own = {"note": remarks.sentence(found.note), "sentence": answer_sentence(found)}
    return {"schema": SCHEMA, **strict_json.every_key(found), **own}
