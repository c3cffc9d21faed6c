"""Scripts in processes of their own: how they end, what they may take, and that nothing of one is met by the next."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idbg.config.environment import sets_up_torch
from idbg.engine.minify.forks.client import Forks, verified
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import Process, process, started_by
from idbg.engine.minify.running import rate, tries_needed

GB = 10**9
Run = Callable[..., TryResult]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forks")


@pytest.fixture(scope="module")
def warm(place: Path) -> Iterator[Forks]:
    with Forks(place, (), place / "warm") as forks:
        yield forks


@pytest.fixture(scope="module")
def cold(place: Path) -> Iterator[Forks]:
    with Forks(place, (), place / "cold", fork=False) as forks:
        yield forks


@pytest.fixture(params=["warm", "cold"])
def run(request: pytest.FixtureRequest, place: Path) -> Run:
    """Run a text in a forked process, and in one of its own: the answers are the same."""
    return runner(request.getfixturevalue(request.param), place)


@pytest.fixture
def forked(warm: Forks, place: Path) -> Run:
    return runner(warm, place)


def runner(forks: Forks, place: Path) -> Run:
    def run(text: str, *, seconds: float = 60, memory: int = 4 * GB, arguments: tuple[str, ...] = ()) -> TryResult:
        path = place / f"script{len(list(place.glob('script*')))}.py"
        path.write_text(text)
        return forks.run(path, seconds=seconds, memory=memory, arguments=arguments)

    return run


@pytest.mark.parametrize(
    ("text", "status", "verdict", "signature"),
    [
        ("print('fine')", 0, "passes", ""),
        ("print('REPRODUCED Error: it'); raise SystemExit(1)", 1, "same", "Error: it"),
        ("print('OTHER Error: else'); raise SystemExit(2)", 2, "other", "Error: else"),
        ("raise ValueError('no')", 1, "other", "exit 1: ValueError: no"),
        ("import sys; sys.exit('words')", 1, "other", "exit 1"),
        ("raise SystemExit(7)", 7, "other", "exit 7"),
    ],
)
def test_a_script_ends_with_its_status_and_says_what_it_means(
    run: Run, text: str, status: int, verdict: str, signature: str
) -> None:
    tried = run(text)
    assert (tried.status, tried.verdict, tried.signature, tried.signal) == (status, verdict, signature, "")


def test_a_script_is_main_and_finds_what_python_file_finds(run: Run) -> None:
    tried = run(
        "import inspect, os, sys, __main__\n"
        "def here(): return 1\n"
        "print(inspect.getsource(here).strip(), __name__, __main__.here is here, sys.argv[1:], os.getcwd())\n"
        "import atexit; atexit.register(print, 'at the end')\n"
        "print(os.path.dirname(__file__) == sys.path[0], os.isatty(1), sys.stdin.read() == '')\n",
        arguments=("a", "b"),
    )
    source, where, end = tried.printed.splitlines()
    assert source.startswith("def here(): return 1 __main__ True ['a', 'b'] ")
    assert (where, end) == ("True False True", "at the end")


def test_a_traceback_shows_the_scripts_own_lines(forked: Run) -> None:
    told = forked("def f():\n    raise ValueError('no')  # here\nf()\n").printed
    assert "raise ValueError('no')  # here" in told and "idbg" not in told


def test_a_signal_is_a_result_and_what_was_said_before_it_is_there(run: Run) -> None:
    tried = run("import ctypes; print('now'); ctypes.string_at(0)")
    assert (tried.signal, tried.status, tried.verdict, tried.signature) == ("SIGSEGV", None, "other", "SIGSEGV")
    assert tried.printed == "now\n"
    said = run("import os; print('REPRODUCED SIGABRT'); os.abort()")
    assert (said.signal, said.verdict, said.signature) == ("SIGABRT", "same", "SIGABRT")


def test_what_does_not_end_is_ended_with_all_that_it_started(run: Run) -> None:
    tried = run(
        "import signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '300'], start_new_session=True).pid)\n"
        "while True: pass\n",
        seconds=2,
    )
    assert tried.hung and tried.status is None and tried.seconds >= 2
    assert process(int(tried.printed)) is None


def test_what_holds_too_much_is_ended(run: Run) -> None:
    tried = run("held = []\nwhile True: held.append(b'x' * 50_000_000)", memory=GB)
    assert tried.out_of_memory and not tried.hung and tried.signature == "out of memory"
    assert tried.peak > GB


def test_of_megabytes_the_first_and_the_last_are_kept(run: Run) -> None:
    tried = run("print('error: first')\nprint('x' * 5_000_000)\nprint('REPRODUCED here')\nraise SystemExit(1)")
    assert 20_000 <= len(tried.printed) < 20_100 and tried.verdict == "same"
    assert tried.printed.startswith("error: first\nx") and "x\n[...]\nx" in tried.printed


def test_no_graph_that_an_earlier_one_compiled_is_found(run: Run) -> None:
    """Torch takes it for the same whatever lowerings the script has registered."""
    text = (
        "import os\nat = os.environ['TORCHINDUCTOR_CACHE_DIR'] + '/fxgraph'\nprint(os.path.exists(at))\nos.makedirs(at)"
    )
    assert [run(text).printed for _ in range(2)] == ["False\n"] * 2


def test_closed_files_and_forked_children_do_not_confuse_it(run: Run) -> None:
    assert run("import os; os.closerange(0, 1000); os._exit(3)").status == 3
    told = run("import os, time\nif os.fork() == 0:\n    time.sleep(100)\nprint('parent')")
    assert (told.status, told.printed) == (0, "parent\n")  # None, had its child been waited for


def test_a_script_ends_without_undoing_torchs_operators_but_undoes_its_own(forked: Run) -> None:
    text = """
import weakref
from torch.library import Library, _del_library
own = Library("own", "DEF")
of_libraries = [each for each in weakref.finalize._registry if each.peek()[1] is _del_library]
print(sum(each.atexit for each in of_libraries), len(of_libraries) > 100)
"""
    assert forked(text).printed == "1 True\n"


def test_a_script_that_sets_up_torch_has_a_python_of_its_own(forked: Run, tmp_path: Path) -> None:
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text("import os\nos.environ['TORCH_LOGS'] = 'x'\nimport torch\n")
    after.write_text("import torch\nimport os\nos.environ['TORCH_LOGS'] = 'x'\n")
    assert sets_up_torch(before) and not sets_up_torch(after)
    text = "import sys\nhad = 'torch' in sys.modules\n{}\nimport torch\nprint(had)"
    assert forked(text.format("")).printed == "True\n"
    assert forked(text.format("import os; os.environ['A'] = 'b'")).printed == "False\n"


def test_random_numbers_differ_from_fork_to_fork(forked: Run) -> None:
    text = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    first, second = forked(text).printed.split(), forked(text).printed.split()
    assert first[0] != second[0] and first[1] != second[1]


def test_a_script_that_ends_the_warm_process_is_tried_alone_and_said(place: Path) -> None:
    with Forks(place, (), place / "dies") as forks:
        run = runner(forks, place)
        tried = run("import os, time; os.kill(os.getppid(), 9); time.sleep(60)")
        assert tried.verdict == "other" and "ended the one that had started it" in tried.printed
        assert not forks.forks
        assert run("print(1)").printed == "1\n"


def test_nobody_is_ended_who_was_not_started() -> None:
    """Number 0, 1, and those above this process would be everything; a number may be another's by now."""
    me, above = process(os.getpid()), process(os.getppid())
    assert me and above
    assert started_by(Process(0, 0, 0, 0, 0)) == started_by(Process(1, 0, 0, 0, 0)) == started_by(above) == []
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in {each.pid for each in started_by(me)}
        assert started_by(Process(me.pid, me.parent, me.session, me.began - 1, 0)) == []
    finally:
        child.kill()
        child.wait()


@pytest.mark.cold
def test_a_verified_script_runs_as_a_stranger_would_run_it(tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text(
        "import os, sys\n"
        "print('torch' in sys.modules, os.environ.get('TORCHINDUCTOR_COMPILE_THREADS'), 'IDBG_SCRATCH' in os.environ)\n"
        "print(os.getcwd() == os.path.dirname(__file__), os.environ['TORCHINDUCTOR_CACHE_DIR'])\n"
        "print('REPRODUCED it'); sys.exit(1)\n"
    )
    tried = verified(script, seconds=60, memory=GB)
    assert tried.verdict == "same"
    cache = os.environ["TORCHINDUCTOR_CACHE_DIR"]
    assert tried.printed.splitlines()[:2] == ["False None False", f"False {cache}"]


def test_how_often_it_fails_and_how_often_it_must_be_tried() -> None:
    outcomes = iter([True, False, False, True, False])
    assert rate(lambda: next(outcomes), 5) == (2, 5)
    assert tries_needed(5, 5) == 1
    assert tries_needed(2, 5) == 6 and (3 / 5) ** 6 < 0.05 < (3 / 5) ** 5
    assert tries_needed(1, 20) == 10


def test_the_warm_process_ends_with_the_one_that_began_it(place: Path) -> None:
    """Also when that one is killed, and a script runs that does not let Python look."""
    script = place / "busy.py"
    script.write_text("import ctypes; print(1, flush=True); ctypes.CDLL(None).sleep(300)")
    text = (
        "import sys\nfrom pathlib import Path\nfrom idbg.engine.minify.forks.client import Forks\n"
        "with Forks(Path(sys.argv[1]), (), Path(sys.argv[1]) / 'killed', fork=False) as forks:\n"
        "    forks.run(Path(sys.argv[2]), seconds=300, memory=10**9)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", text, str(place), str(script)])
    me = process(host.pid)
    assert me
    family: list[Process] = []
    deadline = time.monotonic() + 60
    while len(family) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        family = started_by(me)
    host.kill()
    host.wait()
    while any(alive(each) for each in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(family) == 2 and not any(alive(each) for each in family)


def alive(each: Process) -> bool:
    now = process(each.pid)
    return now is not None and now.began == each.began and not now.is_dead


def test_where_cuda_does_not_take_a_fork_each_script_gets_a_python_of_its_own(place: Path) -> None:
    text = (
        "import sys\n"
        "if 'torch' in sys.modules:  # forked\n"
        "    print('OTHER RuntimeError: Cannot re-initialize CUDA in forked subprocess')\n    sys.exit(2)\n"
        "print('REPRODUCED it')\nsys.exit(1)\n"
    )
    with Forks(place, (), place / "forked") as forks:
        tried = runner(forks, place)(text)
        assert (tried.verdict, tried.signature, forks.forks) == ("same", "it", False)
