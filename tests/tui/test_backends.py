"""Does the list of backends hold what can be chosen, before and after the worker has looked?"""

import pytest

from idbg import plugins
from idbg.schema.events import KnownBackend, WorkerStarted
from idbg.schema.programs import OUR_BACKENDS
from idbg_tui.choices_backends import OURS, choices


def worker(*known: KnownBackend) -> WorkerStarted:
    return WorkerStarted(pid=1, torch="2", python="3", devices=(), seconds=1.0, backends=known)


def test_ours_come_first_then_what_the_worker_found_then_what_was_asked_for() -> None:
    npu = KnownBackend("npu", "an NPU")
    found = choices(worker(npu), "tvm")
    assert found[: len(OURS)] == list(OURS)
    assert found[len(OURS)] == npu
    assert [backend.name for backend in found].count("tvm") == 1 and found[-1].name == "tvm"


def test_ours_are_those_whose_names_no_package_can_take() -> None:
    assert [backend.name for backend in OURS] == list(OUR_BACKENDS)


def test_before_the_worker_is_up_packages_are_listed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: {"idbg.backends": ("npu",)}[group])
    assert [backend.name for backend in choices(None, "aot")] == [*(backend.name for backend in OURS), "npu"]


def test_a_backend_that_takes_the_name_of_ours_does_not_take_its_place() -> None:
    assert choices(worker(KnownBackend("aot", "another")), "aot") == list(OURS)
