"""Torch without one of its private names: nothing ends, a note names it, and the rest of the run is captured."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from idbg.accelerators import registry
from idbg.engine.compat import names
from idbg.engine.compat.hook_table import CORE, FEATURES, is_untried
from idbg.schema import events
from idbg.schema.programs import Program, Target
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile
from tools import hooks as table

ALL = [name for name in table.names() if name not in CORE]
ANSWERED, OFF, UNUSED = (
    "torch._dynamo.config.compiled_autograd",
    "torch._dynamo.guards._get_closure_vars",
    "torch._ops.OpOverloadPacket",
)
PROGRAM = """
import torch

def f(x, y, n):
    z = (x @ x + y).relu().sum(0) * n
    torch._dynamo.graph_break()
    return z

x, y = torch.ones(4, 4), torch.ones(4, requires_grad=True)
for n in (2, 3):
    found = torch.compile(f, backend="inductor", dynamic=False)(x, y, n)
    found.sum().backward()
    assert found.tolist() == f(x, y, n).tolist()
"""
PARTS = 6
Ran = tuple[Counter[str], list[str], events.RunEnded]
Remove = Callable[..., None]


@dataclass(frozen=True)
class Whole:
    """The run with all names: its events, and the names that it looked up, those of its first time too."""

    kinds: Counter[str]
    used: list[str]


def ran(folder: Path) -> Ran:
    """Run the program in this process: how many events of each kind, the notes, and the end."""
    told: list[events.SessionEvent] = []
    path = folder / "subject.py"
    path.write_text(PROGRAM)
    target = Target(backend="inductor", rules=registry.find("mock")[0])
    ended = Jobs(told.append).compile(Compile(1, Program(str(path), cwd=str(folder)), target, str(folder / "repros")))
    assert isinstance(ended, events.RunEnded)
    notes = [event.text for event in told if isinstance(event, events.Noted)]
    return Counter(type(event).__name__ for event in told), notes, ended


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The run with all names, once what is compiled is in the caches."""
    asked: set[str] = set()
    look_up = names._look_up

    def noted(owner: object, name: str, path: str) -> object:
        asked.add(path)
        return look_up(owner, name, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "_look_up", noted)
        forget()
        ran(tmp_path_factory.mktemp("first"))
        forget()
        kinds, notes, ended = ran(tmp_path_factory.mktemp("second"))
    assert ended.failure is None and notes == []
    return Whole(kinds, [name for name in ALL if any(is_in(path, name) for path in asked)])


@pytest.fixture
def remove(monkeypatch: pytest.MonkeyPatch) -> Remove:
    """Removes names of torch, as far as the door sees."""
    look_up = names._look_up

    def removed(*gone: str) -> None:
        def look(owner: object, name: str, path: str) -> object:
            if any(is_in(path, each) for each in gone):
                raise AttributeError(path)
            return look_up(owner, name, path)

        monkeypatch.setattr(names, "_look_up", look)
        monkeypatch.setattr(names, "_lacking", {})
        forget()

    return removed


def is_in(path: str, name: str) -> bool:
    """Whether this is the name, or one below it."""
    return path == name or path.startswith(f"{name}.")


def forget() -> None:
    """The door looks each name up anew."""
    for door in doors(names.internals):
        for known in [name for name, value in vars(door).items() if isinstance(value, type)]:
            del vars(door)[known]


def doors(door: Any) -> Iterator[Any]:
    """This module of torch's as the door has it, and all below that were looked up."""
    yield door
    for below in [value for value in vars(door).values() if type(value) is names._Door]:
        yield from doors(below)


def holds_without(gone: str, whole: Whole, folder: Path) -> list[str]:
    """The program compiles, its results are right, and what is not captured has a note. Returns the notes."""
    kinds, notes, ended = ran(folder)
    assert ended.failure is None, gone
    for note in notes:
        assert note.partition(" are not recorded in full")[0] in FEATURES.values() and gone in note
    assert len(set(notes)) == len(notes)
    lost = [kind for kind in whole.kinds if not kinds[kind]]
    assert not lost or notes, (gone, lost)
    assert len(lost) < 4 and kinds["GraphCaptured"] and kinds["CodeCaptured"], (gone, lost)
    return notes


def test_nothing_is_looked_up_to_import_the_worker_and_the_engine() -> None:
    """So no missing name ends an import: here all are missing."""
    code = """
import pkgutil, importlib
from idbg.engine.compat import names
def missing(owner, name, path):
    raise AttributeError(path)
names._look_up = missing
import idbg.engine, idbg.worker.jobs
for each in pkgutil.walk_packages(idbg.engine.__path__, "idbg.engine."):
    if not each.name.startswith(("idbg.engine.compat.builds.", "idbg.engine.minify.forks.")):
        importlib.import_module(each.name)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_wrapper_without_a_name_turns_its_feature_off(whole: Whole, remove: Remove, tmp_path: Path) -> None:
    remove(OFF)
    (note,) = holds_without(OFF, whole, tmp_path)
    assert note.startswith("guards and their costs are not recorded in full: torch 2.")


def test_what_can_be_answered_without_a_name_is(whole: Whole, remove: Remove, tmp_path: Path) -> None:
    remove(ANSWERED)
    assert holds_without(ANSWERED, whole, tmp_path)


def test_a_class_that_torch_lacks_has_no_instances(monkeypatch: pytest.MonkeyPatch, remove: Remove) -> None:
    notes: list[str] = []
    remove(UNUSED)
    with names.notes_to(notes.append):
        lacking: Any = names.internals._ops.OpOverloadPacket
        assert not isinstance(1, lacking)
        with pytest.raises(names.Missing, match=f"has no {UNUSED}"):
            lacking("mm")
        assert names.find(UNUSED, None) is None
    assert len(notes) == 1 and UNUSED in notes[0]


@pytest.mark.parametrize("gone", CORE)
def test_without_a_name_that_every_run_needs_none_begins(gone: str, remove: Remove) -> None:
    assert gone in table.names()
    names.check_core()
    remove(gone)
    with pytest.raises(names.Missing, match=gone):
        names.check_core()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_torch_without_a_name_is_captured(part: int, whole: Whole, remove: Remove, tmp_path: Path) -> None:
    assert len(whole.used) > 20
    for number, gone in enumerate(whole.used[part::PARTS]):
        (folder := tmp_path / str(number)).mkdir()
        remove(gone)
        holds_without(gone, whole, folder)


@pytest.mark.slow
def test_torch_without_the_names_that_the_program_does_not_look_up_is_captured_whole(
    whole: Whole, remove: Remove, tmp_path: Path
) -> None:
    """Nothing asks for one of them, so that without all the run is as it is without one."""
    remove(*(set(ALL) - set(whole.used)))
    assert holds_without("none of these", whole, tmp_path) == []


def test_a_newer_torch_is_untried_and_an_older_one_is_not() -> None:
    assert is_untried("99.0.1+cpu") and is_untried("2.100.0") and not is_untried("2.11.0a0+git")
