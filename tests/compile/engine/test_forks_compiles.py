"""Scripts in processes of their own that compile: on as many threads as ever, and met by nothing that was killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest

from idbg.engine.compat.builds.scratch import is_torn
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.processes import Process, process, started_by

GB = 10**9
ON_TWO_THREADS = """
import os
import torch
from torch._inductor.utils import run_and_get_code

def threads():
    return len(os.listdir("/proc/self/task"))

torch.set_num_threads(2)
before = threads()
x = torch.linspace(0, 1, 1 << 20)
result, (code,) = run_and_get_code(torch.compile(lambda x: x.sin() + 1), x)
assert torch.allclose(result, x.sin() + 1)
print("omp parallel" in code, torch.get_num_threads(), threads() > before)
"""
# The build of the kernel is stopped as its output is there, and empty; it leaves only to SIGKILL
STOPPED = """#!/bin/sh
case "$*" in *.main.so*) ;; *) exec g++ "$@" ;; esac
[ -e {go} ] && exec g++ "$@"
trap '' INT TERM
while [ $# -gt 0 ]; do [ "$1" = -o ] && : > "$2" && echo "$2" > {at}; shift; done
sleep 300
"""
COMPILES = "import torch\nprint(torch.compile(lambda x: x.sin() + 1)(torch.zeros(8)).sum().item())\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forks")


@pytest.fixture(scope="module")
def forks(place: Path) -> Iterator[Forks]:
    with Forks(place, (), place / "scratch") as forks:
        yield forks


def script(place: Path, text: str, name: str = "script.py") -> Path:
    path = place / name
    path.write_text(text)
    return path


def test_one_script_after_another_runs_its_kernel_on_two_threads(forks: Forks, place: Path) -> None:
    """GNU OpenMP hangs in a process whose parent had run on several threads."""
    for _ in range(2):
        tried = forks.run(script(place, ON_TWO_THREADS), seconds=120, memory=4 * GB)
        assert tried.printed.endswith("True 2 True\n") and tried.status == 0, tried
    assert forks.forks


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_a_build_leaves_nothing_and_the_script_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, at, go = tmp_path / "compiler", tmp_path / "at", tmp_path / "go"
    compiler.write_text(STOPPED.format(go=go, at=at))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    linkers: list[int] = []

    me = process(os.getpid())
    assert me is not None

    def kill_the_server_as_the_linker_writes(me: Process = me) -> None:
        if until(lambda: at.exists() and at.read_text()):
            go.touch()
            family = started_by(me)
            linkers.extend(each.pid for each in family if command(each).startswith(f"/bin/sh\0{compiler}"))
            parents = {each.pid: each.parent for each in family}
            server = linkers[0]
            while parents[server] != me.pid:  # another test's server may run beside it
                server = parents[server]
            os.kill(server, signal.SIGKILL)

    with Forks(tmp_path, (), tmp_path / "scratch") as forks:
        watch = threading.Thread(target=kill_the_server_as_the_linker_writes)
        watch.start()
        tried = forks.run(script(tmp_path, COMPILES), seconds=240, memory=4 * GB)
        watch.join()
        assert tried.printed == "8.0\n" and forks.forks, tried
        assert linkers and not [pid for pid in linkers if process(pid)]
        assert not Path(at.read_text().strip()).exists(), "what the linker wrote went with it"
        assert [file for file in (tmp_path / "scratch").rglob("*.so") if is_torn(file)] == []


def test_what_a_killed_command_of_a_script_left_torn_goes(forks: Forks, place: Path) -> None:
    """A command of the user's that compiles is a plain Python, whose compilers write as ever."""
    text = (
        "import os, pathlib\n"
        "for name, file in (('TORCHINDUCTOR_CACHE_DIR', 'ab/torn.so'), ('TORCH_EXTENSIONS_DIR', 'x/lock')):\n"
        "    path = pathlib.Path(os.environ[name], file)\n"
        "    path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    path.touch()\n"
        "    print(path)\n"
    )
    ended = forks.run(script(place, text), seconds=60, memory=GB)
    assert all(Path(line).exists() for line in ended.printed.splitlines())
    killed = forks.run(script(place, text + "while True: pass\n"), seconds=1, memory=GB)
    assert killed.hung and not any(Path(line).exists() for line in killed.printed.splitlines())


def test_what_interrupts_the_host_ends_the_script_and_the_next_one_runs(place: Path) -> None:
    """SIGINT reaches all of the host's group, as Ctrl+C and a worker's cancel do."""
    text = (
        "import signal, sys\nfrom pathlib import Path\nfrom idbg.engine.minify.forks.client import Forks\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # who begins the tests may have it ignored
        "place = Path(sys.argv[1])\n"
        "with Forks(place, (), place / 'interrupted', fork=False) as forks:\n"
        "    try:\n        forks.run(place / 'long.py', seconds=300, memory=10**9)\n"
        "    except KeyboardInterrupt:\n        print('interrupted', flush=True)\n"
        "    print(forks.run(place / 'short.py', seconds=300, memory=10**9).printed, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    script(place, "import subprocess\nsubprocess.run(['sleep', '300'])\n", "long.py")
    script(place, "print('short')\n", "short.py")
    host = subprocess.Popen(
        [sys.executable, "-c", text, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    me = process(host.pid)
    assert me
    family: list[Process] = []

    def is_sleeping() -> bool:
        family[:] = started_by(me)
        return any("sleep" in command(each) for each in family)

    assert until(is_sleeping)
    os.killpg(host.pid, signal.SIGINT)
    assert host.stdout is not None and select([host.stdout], [], [], 60)[0], (
        "it waits for a process that sleeps for 300 s"
    )
    assert host.stdout.readline() == b"interrupted\n"
    assert host.stdout.readline() == b"short\n"
    assert until(lambda: not any(is_alive(each) for each in family))
    host.communicate()
    assert host.returncode == 0


def command(each: Process) -> str:
    try:
        return Path(f"/proc/{each.pid}/cmdline").read_text()
    except OSError:
        return ""


def is_alive(each: Process) -> bool:
    now = process(each.pid)
    return now is not None and now.began == each.began and not now.is_dead


def until(done) -> bool:
    deadline = time.monotonic() + 180
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
