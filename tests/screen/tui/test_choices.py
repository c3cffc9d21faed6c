"""Do the lists hold what can be chosen: backends before and after the worker has looked, and accelerators, so that one
that was in force can come back?"""

from pathlib import Path

import pytest

from idbg import plugins
from idbg.schema.events import KnownBackend, WorkerStarted
from idbg.schema.programs import OUR_BACKENDS
from idbg_tui import choices
from idbg_tui.widgets.picker import matching

TPU = 'name = "tpu"\ndescription = "8 by 128"\n[[rules]]\nkind = "alignment"\nmultiple = 8\n'


def worker(*known: KnownBackend) -> WorkerStarted:
    return WorkerStarted(pid=1, torch="2", python="3", devices=(), seconds=1.0, backends=known)


def test_ours_come_first_then_what_the_worker_found_then_what_was_asked_for() -> None:
    npu = KnownBackend("npu", "an NPU")
    listed = choices.backends(worker(npu), "tvm")
    assert listed[: len(choices.OURS)] == list(choices.OURS)
    assert listed[len(choices.OURS)] == npu
    assert [backend.name for backend in listed].count("tvm") == 1 and listed[-1].name == "tvm"


def test_ours_are_those_whose_names_no_package_can_take() -> None:
    assert [backend.name for backend in choices.OURS] == list(OUR_BACKENDS)


def test_before_the_worker_is_up_packages_are_listed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: {"idbg.backends": ("npu",)}[group])
    names = [backend.name for backend in choices.backends(None, "aot")]
    assert names == [*(backend.name for backend in choices.OURS), "npu"]


def test_a_backend_that_takes_the_name_of_ours_does_not_take_its_place() -> None:
    assert choices.backends(worker(KnownBackend("aot", "another")), "aot") == list(choices.OURS)


def test_what_was_used_the_folders_files_and_the_presets_are_listed_once(tmp_path: Path) -> None:
    (tmp_path / "tpu.toml").write_text(TPU)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "broken.toml").write_text("[[")
    used = tmp_path / "other" / "mine.toml"
    used.parent.mkdir()
    used.write_text(TPU)
    listed = choices.accelerators(tmp_path, [str(used), "mock", str(used)])
    assert [name for name, _ in listed][:2] == [str(used), str(tmp_path / "tpu.toml")]
    assert [name for name, _ in listed].count("mock") == 1
    assert dict(listed)[str(tmp_path / "tpu.toml")] == "8 by 128"


def test_a_used_file_that_is_gone_says_so(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.toml")
    assert "there is no file" in dict(choices.accelerators(tmp_path, [gone]))[gone]


def test_a_file_without_a_rule_is_no_accelerator_to_choose(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('name = "x"\n')
    assert str(tmp_path / "settings.toml") not in dict(choices.accelerators(tmp_path, []))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["/a/npu.toml", "coral", "tpu", "spyre"]),
        ("tpu", ["tpu", "coral"]),
        ("npu", ["/a/npu.toml"]),
        ("STICKS", ["spyre"]),
        ("edge google", ["coral"]),
        ("spr", ["spyre"]),
        ("zz", []),
    ],
)
def test_typing_finds_the_nearest_name_then_the_words_and_then_the_letters(typed: str, found: list[str]) -> None:
    listed = [("/a/npu.toml", "mine"), ("coral", "Google Edge TPU"), ("tpu", "Google"), ("spyre", "128-byte sticks")]
    assert [name for name, _ in matching(listed, typed)] == found


@pytest.mark.parametrize("folder", ["x" * 100_000, "x" * 300, "a\0b", "nowhere"])
@pytest.mark.parametrize("used", ["y" * 100_000 + ".toml", "y/" * 3_000 + "a.toml", "a\0.toml", "z" * 300])
def test_names_that_no_file_can_have_leave_the_presets(folder: str, used: str) -> None:
    """A saved session may name any."""
    listed = dict(choices.accelerators(Path(folder), [used]))
    assert listed[used] and "mock" in listed
