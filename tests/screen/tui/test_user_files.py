"""A session may name anything as a source file: what is no file is not opened, and nothing is waited for."""

import os
import pty
import socket
from pathlib import Path

import pytest

from idbg.schema.errors import BadInput
from idbg_tui import choices, user_files
from idbg_tui.terminal import suspend
from idbg_tui.user_files import LARGEST, read
from tests.harness.recorded import app_of
from tests.harness.screen import settle

NOTHING = "not read: its size is 0"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is opened from here on."""
    found: list[str] = []
    before = os.open

    def remember(path: str, *args: object, **kwargs: object) -> int:
        found.append(str(path))
        return before(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", remember)
    return found


def test_a_file_is_read_whole_with_lines_as_python_counts_them(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_bytes("x = 1\r\ny = 'é'\rz".encode())
    assert read(str(file), 0.0) == ("x = 1\ny = 'é'\nz", "")
    os.utime(file, (50.0, 50.0))
    assert read(str(file), 40.0)[1] == "edited since this run"
    assert read(str(file), 60.0)[1] == ""


def test_a_pipe_a_socket_a_folder_and_devices_are_not_opened(tmp_path: Path, opened: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert read(str(tmp_path / "socket"), 0.0) == ("", "not read: it is a socket")
    assert read(str(tmp_path / "pipe"), 0.0) == ("", "not read: it is a pipe")
    assert read(str(tmp_path), 0.0) == ("", "not read: it is a folder")
    devices = ("/dev/zero", "/dev/null", "/dev/tty", "/dev/kmsg", "/dev/random")
    assert {read(device, 0.0) for device in devices if os.path.exists(device)} == {("", "not read: it is a device")}
    assert not opened


def test_a_terminal_is_not_opened(opened: list[str]) -> None:
    master, terminal = pty.openpty()
    try:
        name = os.ttyname(terminal)
        opened.clear()
        assert read(name, 0.0) == ("", "not read: it is a device")
        assert not opened
    finally:
        os.close(master)
        os.close(terminal)


@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/self/mem", "/proc/self/root/proc/kmsg", "/proc/self/environ"])
def test_what_the_kernel_makes_up_is_not_opened(path: str, opened: list[str]) -> None:
    assert read(path, 0.0)[1] in (NOTHING, "cannot be read (No such file or directory)")
    assert not opened


def test_a_file_that_is_too_large_or_grows_is_read_within_bounds(tmp_path: Path, opened: list[str]) -> None:
    large = tmp_path / "large.py"
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)
    assert read(str(large), 0.0) == ("", "not read: it has 8 MiB")
    assert not opened
    assert user_files._read(_written(tmp_path / "grown.py", "x" * 100), 0, 10) == "x" * 10


def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe"):
        user_files._read(str(tmp_path / "pipe"), 0, 10)


def test_names_that_no_file_has_are_said() -> None:
    assert read("a\0b.py", 0.0) == ("", "cannot be read (no file has such a name)")
    assert read("\ud800.py", 0.0) == ("", "cannot be read (no file has such a name)")
    assert read("x" * 5000, 0.0) == ("", "cannot be read (File name too long)")


def test_no_editor_is_started_on_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    app = app_of("attention", tmp_path)
    for path, why in (
        (str(tmp_path / "pipe"), "is a pipe"),
        ("a\0b", "no file has such a name"),
        ("no.py", "not there"),
    ):
        with pytest.raises(BadInput, match=why):
            suspend.edit(app, path, 1)


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "a\0b", "/proc/kmsg", "/dev/tty"])
async def test_the_screen_shows_the_kept_line_and_says_why_no_more(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / name) if name == "pipe" else name
    app = app_of("attention", tmp_path, replacing={"examples/attention.py": path})
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        node = next(node for node in app.state.graph.nodes if node.file)
        app.state.choose(app.state.graph.node_id(node.name))
        app.body.panes["source"].choose_view("python")  # type: ignore[attr-defined]
        await pilot.press("2", "j")
        await settle(pilot)
        sheet = app.body.panes["source"]._side.sheet  # type: ignore[attr-defined]
        assert sheet.text == node.code and sheet.caption.endswith("this line was kept with the run")


@pytest.mark.parametrize("name", ["pipe.toml", "/dev/tty", "a\0.toml", "/dev/zero"])
def test_an_accelerator_that_is_no_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    path = str(tmp_path / name) if name == "pipe.toml" else name
    named = dict(choices.accelerators(tmp_path, [path]))
    assert "it is a pipe or a device" in named[path] or "null byte" in named[path]


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)
