"""Show how a backend does on the programs of the conformance kit: by family, then all that fails or is not known."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from idbg.format.amounts import counted
from idbg.format.file_names import from_here
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema import programs
from idbg.schema.conformance import CONTROL, HANG, Conformance, ConformanceProgram, ConformanceRow, Grade
from idbg.schema.diff import TensorDiff
from idbg.schema.programs import FALLBACK, Failure
from idbg.schema.strict_json import picked
from idbg.views import remarks
from idbg.views.criteria import because
from idbg.views.diff import first_line
from idbg.views.tree import Block, Cell, Column, Row, Section, Table, Tone, Verdict, words

SCHEMA = "idbg.conform/1"
COLUMNS = (
    Column("programs", "count", 6),
    Column("compiles", rank=5),
    Column("falls back", rank=4),
    Column("agrees", rank=5),
    Column("slow", rank=3),
)
_LOOKS: dict[Grade, programs.Verdict] = {
    "passed": "clean",
    "failed": "failed",
    "falls back": "violations",
    "unknown": "waiting",
}
_TONES: dict[Grade, Tone] = {"passed": "clean", "failed": "reject", "falls back": "fallback", "unknown": "dim"}
_WORDS: dict[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
_OWNERS = {"torch": "torch", "user": "the program", "worker": "idbg", "idbg": "idbg"}
_NAMED = 3  # of the ops that run natively, and of the tensors that are wrong
_ANSWERS: tuple[Callable[[ConformanceRow], bool | None], ...] = (
    lambda row: row.compiles,
    lambda row: row.falls_back,
    lambda row: row.agrees,
    lambda row: row.slow,
)
_BAD = (False, True, False, True)  # the answers of `_ANSWERS` that count against the backend


def view(found: Conformance) -> Section:
    """A row a family, with its programs folded below; then each program that fails, falls back or is not judged."""
    rows = [_family(name, list(own), found) for name, own in groupby(found.rows, lambda row: row.program.family)]
    body: list[Block] = [Table(COLUMNS, rows, "family")] if rows else []
    listed: tuple[tuple[Grade, str], ...] = (
        ("failed", "Failures"),
        ("falls back", "Run by eager: nothing of it was compiled"),
        ("unknown", "Not judged"),
    )
    for grade, title in listed:
        graded = [row for row in found.rows if row.grade == grade]
        body += [Table((), [_program_row(row, found) for row in graded], "program", title)] if graded else []
    if found.problem is not None:
        body.append(
            Row(
                "problem",
                words(
                    (f"{VERDICT_SIGNS['failed']} ", "reject"),
                    _failure_words(found.problem),
                    (f"  {found.problem.hint}", "dim"),
                ),
            )
        )
    body += [_not_run(left)] if found.rows and (left := missing(found)) else []
    return Section(f"Conformance of {found.backend}", summary(found), failures(found), verdict(found), tuple(body))


def summary(found: Conformance) -> str:
    """What all came to, in a line with its sign, and the versions."""
    count = {grade: sum(row.grade == grade for row in found.rows) for grade in _LOOKS}
    if found.problem is not None and not found.rows:
        return f"{VERDICT_SIGNS['failed']} {found.backend}: {_failure_words(found.problem)}"
    parts = [f"{count['passed']} of {counted(len(found.rows), 'program')} agree with eager"]
    parts += [f"{count['failed']} failed"] * bool(count["failed"])
    parts += [f"{count['falls back']} run by eager"] * bool(count["falls back"])
    parts += [f"{count['unknown']} not judged"] * bool(count["unknown"])
    parts += [f"{len(missing(found))} not run"] * bool(missing(found))
    named = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    looks: dict[Verdict, programs.Verdict] = {"ok": "clean", "error": "failed", "warning": "violations"}
    sign = VERDICT_SIGNS[looks.get(verdict(found), "waiting")]
    return f"{sign} {found.backend}: {', '.join(parts)}" + (f" ({named})" if named else "")


def verdict(found: Conformance) -> Verdict:
    """ "error" where a program fails; "unknown" where one was not run or not judged, or none was compiled."""
    grades = [row.grade for row in found.rows]
    if "failed" in grades or found.problem is not None:
        return "error"
    if missing(found) or "unknown" in grades or "passed" not in grades:
        return "unknown"
    return "warning" if "falls back" in grades else "ok"


def failures(found: Conformance) -> int:
    """How many programs fail."""
    return sum(row.grade == "failed" for row in found.rows)


def missing(found: Conformance) -> list[ConformanceProgram]:
    """The programs that were to run and did not."""
    ran = {(row.program.file, row.program.name) for row in found.rows}
    return [each for each in found.expected if (each.file, each.name) not in ran]


def name_of(program: ConformanceProgram) -> str:
    """The program's name among all: "views:transposes"."""
    return f"{Path(program.file).stem}:{program.name}"


def _family(name: str, rows: list[ConformanceRow], found: Conformance) -> Row:
    grade = _worst(rows)
    below = [_program_row(row, found, details=False) for row in rows]
    cells = (_share([answer(row) for row in rows], bad) for answer, bad in zip(_ANSWERS, _BAD, strict=True))
    return Row(
        name,
        words((f"{VERDICT_SIGNS[_LOOKS[grade]]} ", _TONES[grade]), (name, "strong")),
        (Cell(len(rows)), *cells),
        rows=below,
        opens="fold",
    )


def _worst(rows: Iterable[ConformanceRow]) -> Grade:
    grades = {row.grade for row in rows}
    order: tuple[Grade, ...] = ("failed", "unknown", "falls back")
    return next((grade for grade in order if grade in grades), "passed")


def _share(answers: Sequence[bool | None], bad: bool) -> Cell:
    """ "all", "none", "5 of 6"; of those that are known, and how many are not."""
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Cell("unknown", "dim")
    yes = sum(known)
    text = "all" if yes == len(answers) else f"{yes} of {len(known)}" if yes else "none"
    unknown = f", {len(answers) - len(known)} unknown" if len(known) < len(answers) else ""
    tone: Tone = ("reject" if not bad else "fallback") if bad in known else "clean"
    return Cell(f"{text}{unknown}", tone)


def _program_row(row: ConformanceRow, found: Conformance, *, details: bool = True) -> Row:
    key = (row.program.file, row.program.name, details)
    tone = _TONES[row.grade]
    head = words(
        (f"{VERDICT_SIGNS[_LOOKS[row.grade]]} ", tone),
        (name_of(row.program), "strong"),
        (f"  {row.program.about}", "dim"),
    )
    lines = list(_details(row, found)) if details else []
    below = [Row((key, number), words((f"{label}: ", "dim"), text)) for number, (label, text) in enumerate(lines)]
    answers = () if details else (Cell(None), *(Cell(_WORDS[answer(row)]) for answer in _ANSWERS))
    return Row(key, head, answers, rows=below, open="all" if details else "")


def _details(row: ConformanceRow, found: Conformance) -> Iterator[tuple[str, str]]:
    """What happened, whose it is, and the script that shows it."""
    yield "because", reason(row)
    if row.grade == "failed":
        yield "owner", owner(row, found)
    if (ratio := row.ratio) is not None and row.slow:
        yield "slow", f"{ratio:.2g} {MARKS['times']} eager's time"
    if row.script is not None:
        if row.script.blame:
            yield "where", row.script.blame
        size = (
            f" ({counted(row.script.found.size, row.script.found.unit.removesuffix('s'))} of {row.script.found.whole})"
            if row.script.found and row.script.path
            else ""
        )
        yield "script", f"{from_here(row.script.path)}{size}" if row.script.path else f"none: {row.script.problem}"
    yield "again", again(row, found.backend)


def _not_run(left: Sequence[ConformanceProgram]) -> Table:
    rows = [Row((each.file, each.name), words((f"{VERDICT_SIGNS['waiting']} ", "dim"), name_of(each))) for each in left]
    return Table((), rows, "program", "Not run")


def again(row: ConformanceRow, backend: str) -> str:
    """The command that compares the program again."""
    return f"idbg diff {from_here(row.program.file)}:{row.program.name} --backend {backend}"


def reason(row: ConformanceRow) -> str:
    """Why the program's grade is what it is, in a sentence."""
    failure = row.cause or row.failure
    if failure is not None:
        return _failure_words(failure)
    assert row.result is not None
    report, native = row.result.report, row.result.native
    reference = report.sides[0].failure if report.sides else None
    if reference is not None:
        return f"eager itself fails: {_failure_words(reference)}"
    if row.is_native and native is not None and native.left:
        return f"the backend leaves {_some(native.ops)} to eager"
    if report.verdict == "empty":
        return "no graph was compiled"
    if report.not_comparable:
        return remarks.sentence(report.not_comparable)
    wrong = [diff for diff in (*report.outputs, *report.gradients) if diff.failed]
    if wrong:
        return "; ".join(_wrong(diff) for diff in wrong[:_NAMED]) + (
            f"; and {len(wrong) - _NAMED} more" * (len(wrong) > _NAMED)
        )
    return f"the comparison came to no verdict: {report.verdict}" if row.grade == "unknown" else "the numbers agree"


def _wrong(diff: TensorDiff) -> str:
    why = because(diff) or first_line(remarks.tensor_note(diff)) or ", ".join(diff.failed_by)
    return f"{diff.name} is wrong: {why}"


def _failure_words(failure: Failure) -> str:
    what = failure.first_line
    named = failure.kind in ("user", "torch", "backend") and failure.type not in (FALLBACK, HANG)
    return f"{failure.type}: {what}" if named and failure.type not in what else what


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def owner(row: ConformanceRow, found: Conformance) -> str:
    """Whose the failure is: the backend's, torch's or the program's."""
    failure = row.cause
    if failure is None:  # the numbers: eager and float64 agree with one another
        return f"the backend {found.backend}"
    if failure.kind == "torch" and row.control == "passed":
        return f"the backend {found.backend}: raised in torch, and {CONTROL} compiles this program"
    return _OWNERS.get(failure.kind, f"the backend {found.backend}")


def as_json(found: Sequence[Conformance]) -> dict[str, object]:
    """The same of several backends for another program."""
    return {"schema": SCHEMA, "backends": [_json(each) for each in found]}


def _json(found: Conformance) -> dict[str, object]:
    return {
        "backend": found.backend,
        "verdict": verdict(found),
        "summary": {
            "programs": len(found.rows),
            **{grade.replace(" ", "_"): sum(row.grade == grade for row in found.rows) for grade in _LOOKS},
            "not_run": [name_of(each) for each in missing(found)],
        },
        **picked(found, "problem versions quick seconds at"),
        "rows": [_row_json(row, found) for row in found.rows],
    }


def _row_json(row: ConformanceRow, found: Conformance) -> dict[str, object]:
    result, script = row.result, row.script
    return {
        "program": name_of(row.program),
        **picked(row.program, "family about file"),
        **picked(row, "grade compiles falls_back agrees slow ratio"),
        "eager_ms": result.eager.median if result and result.eager else None,
        "compiled_ms": result.compiled.median if result and result.compiled else None,
        "p": result.p if result else None,
        "graphs": result.graphs if result else None,
        "breaks": result.breaks if result else None,
        "native": result.native if result else None,
        "reason": reason(row) if row.grade != "passed" else "",
        "owner": owner(row, found) if row.grade == "failed" else "",
        "failure": row.cause or row.failure,
        "script": script.path if script else "",
        "script_problem": script.problem if script else "",
        "session": script.session if script else "",
        "seconds": row.seconds,
    }
