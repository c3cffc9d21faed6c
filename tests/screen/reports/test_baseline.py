"""A baseline tells what is new from what is known, whatever happens to lines, programs, accelerators and the file."""

import json
from pathlib import Path

import msgspec
import pytest

from idbg.reports import baseline
from idbg.reports.baseline import NOTHING_KNOWN, Checked, compared_with, updated
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.programs import Program
from idbg.schema.runs import fold
from idbg.views.diagnostics import Diagnostic, diagnostics
from tests.harness.recorded import log

ALL = frozenset({"failure", "mismatch", "reject", "fallback", "pad", "tile", "slow", "unknown", "break", "recompile"})


def found_in(name: str) -> list[Diagnostic]:
    last = fold(log(name)).last
    assert last is not None
    return diagnostics(last)


def looked(program: str = "a.py", kinds: frozenset[str] = ALL, accelerator: str = "mock", **others: object) -> Checked:
    return Checked(program, kinds, accelerators=(accelerator,), **others)  # type: ignore[arg-type]


def test_what_is_known_is_not_new_also_where_its_lines_have_moved() -> None:
    found = found_in("breaking")
    known = updated(found, looked(), NOTHING_KNOWN)
    assert compared_with(found, looked(), NOTHING_KNOWN).new == tuple((each, each.count) for each in found)
    moved = [msgspec.structs.replace(each, line=each.line + 40) for each in found]
    assert compared_with(moved, looked(), known) == ((), len(found), ())


def test_known_twice_and_now_three_times_is_one_new_and_once_is_one_fewer() -> None:
    (found,) = [each for each in found_in("breaking") if each.kind == "break" and each.count == 2]
    known = updated([found], looked(), NOTHING_KNOWN)
    more = msgspec.structs.replace(found, count=3)
    assert compared_with([more], looked(), known).new == ((more, 1),)
    verdict = compared_with([msgspec.structs.replace(found, count=1)], looked(), known)
    assert not verdict.new and [(each.key, count) for each, count in verdict.fewer] == [
        (found.key.partition(".")[0], 1)
    ]


def test_two_places_with_one_key_are_counted_together() -> None:
    found = found_in("attention")
    keys = [each.key.partition(".")[0] for each in found]
    assert len(set(keys)) < len(keys), "the recording has a key at two places"
    known = updated(found, looked(), NOTHING_KNOWN)
    assert len(known.known) == len(set(keys))
    assert sum(each.count for each in known.known) == sum(each.count for each in found)
    assert not compared_with(reversed(found), looked(), known).new


def test_what_is_gone_is_told_and_an_update_takes_it_out() -> None:
    found = found_in("breaking")
    known = updated(found, looked(), NOTHING_KNOWN)
    left = [each for each in found if each.kind != "recompile"]
    gone = compared_with(left, looked(), known).fewer
    assert {(each.kind, count) for each, count in gone} == {("recompile", 0)} and len(gone) == len(found) - len(left)
    assert "recompile" not in {each.kind for each in updated(left, looked(), known).known}


def test_a_run_that_did_not_come_to_its_end_takes_nothing_out() -> None:
    found = found_in("breaking")
    known = updated(found, looked(), NOTHING_KNOWN)
    cut = looked(whole=False)
    assert compared_with([], cut, known).fewer == ()
    assert updated(found[:1], cut, known) == known


@pytest.mark.parametrize(
    "elsewhere",
    [looked("b.py"), looked(accelerator="npu.toml"), looked(stage="dynamo"), looked(kinds=frozenset({"mismatch"}))],
)
def test_nothing_is_said_of_what_nobody_looked_for(elsewhere: Checked) -> None:
    violations = [each for each in found_in("attention") if each.kind == "violation"]
    known = updated(violations, looked(), NOTHING_KNOWN)
    assert compared_with([], elsewhere, known).fewer == ()
    assert updated([], elsewhere, known) == known


def test_an_accelerator_and_a_program_know_only_their_own() -> None:
    found = [each for each in found_in("attention") if each.kind == "violation"]
    known = updated(found, looked(), NOTHING_KNOWN)
    other = [msgspec.structs.replace(each, accelerator="npu.toml") for each in found]
    assert compared_with(other, looked(accelerator="npu.toml"), known).new
    assert compared_with(found, looked("b.py"), known).new
    both = updated(other, looked(accelerator="npu.toml"), known)
    assert {each.target for each in both.known} == {"mock", "npu.toml"}


def test_a_program_is_named_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = {baseline.program_of(Program(path)) for path in ("a/b.py", "./a/b.py", str(tmp_path / "a" / "b.py"))}
    assert named == {"a/b.py"}
    assert baseline.program_of(Program("pkg.mod", module=True, argv=("--lr", "1"))) == "-m pkg.mod --lr 1"


def test_the_file_has_an_entry_a_line_in_one_order_and_reads_as_it_was_written(tmp_path: Path) -> None:
    found = [
        msgspec.structs.replace(each, message=f"]]> </script> \x1b[31m \udc80 {each.message}")
        for each in found_in("breaking")
    ]
    known = updated(found, looked(), NOTHING_KNOWN)
    path = tmp_path / "known.json"
    baseline.write(path, known)
    assert baseline.load(path) == known
    text = path.read_text()
    assert len([line for line in text.splitlines() if '"key"' in line]) == len(known.known)
    assert "\x1b" not in text and json.loads(text)["schema"] == "idbg.baseline/1"
    assert baseline.encode(updated(reversed(found), looked(), NOTHING_KNOWN)).count(b"\n") == text.count("\n")
    baseline.write(path, NOTHING_KNOWN)
    assert baseline.load(path) == NOTHING_KNOWN
    assert [each.name for each in tmp_path.iterdir()] == ["known.json"]


ENTRY = '{"program":"a.py","target":"","kind":"break","key":"k","count":1,"text":""}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no baseline that can be read"),
        ("[1, 2]", "no baseline that can be read"),
        ('{"schema": "idbg.baseline/2", "known": []}', "its schema is 'idbg.baseline/2', and this idbg reads"),
        ('{"known": []}', "schema"),
        ('{"schema": "idbg.baseline/1", "known": [], "more": 1}', "more"),
        (f'{{"schema": "idbg.baseline/1", "known": [{ENTRY}, {ENTRY}]}}', "it has k of a.py twice"),
        (f'{{"schema": "idbg.baseline/1", "known": [{ENTRY.replace(":1,", ":0,")}]}}', "count"),
        (f'{{"schema": "idbg.baseline/1", "known": [{ENTRY.replace("break", "brake")}]}}', "brake"),
        ('<<<<<<< ours\n{"schema": "idbg.baseline/1"}\n>>>>>>> theirs', "a merge that was not finished"),
        ("[" * 100_000, "no baseline that can be read"),
        ('{"schema": "idbg.baseline/1", "known": [NaN]}', "no baseline that can be read"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        baseline.load(path)
    assert says in refused.value.message and refused.value.hint


def test_a_file_that_is_not_there_or_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no baseline"):
        baseline.load(tmp_path / "none.json")
    assert baseline.load(tmp_path / "none.json", must_exist=False) == NOTHING_KNOWN
    with pytest.raises(BadInput, match="cannot read"):
        baseline.load(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="no baseline that can be read"):
        baseline.load(tmp_path / "bytes.json")
    with pytest.raises(OutputError, match="cannot write the baseline"):
        baseline.write(tmp_path / "no" / "folder.json", NOTHING_KNOWN)
