"""What a program does beside compiling runs under idbg as under plain Python: each leaves a trace of what ran."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.cold]

COMPILED = """
import torch

@torch.compile(backend="eager")
def f(x):
    return x.sin() + 1
"""
NOT_COMPILED = """
class torch:
    ones = float

def f(x):
    return x
"""
HEAD = f"""
import atexit, os, signal, subprocess, sys, threading, time
{COMPILED}
def ran(what):
    with open("trace", "a") as file:
        file.write(f"{{what}}\\n")
"""
CALL = "f(torch.ones(3))\n"
BEGIN = f"{HEAD}\n{CALL}"
PROGRAMS = {
    "a handler of SIGTERM": BEGIN
    + """
signal.signal(signal.SIGTERM, lambda *_: ran("TERM"))
ran("end")
""",
    "handlers of many signals": BEGIN
    + """
for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD):
    signal.signal(each, lambda number, frame: ran(number))
ran("end")
""",
    "signals that it sends itself": BEGIN
    + """
for each in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
    signal.signal(each, lambda number, frame: ran(number))
    os.kill(os.getpid(), each)
ran("end")
""",
    "SIGTERM that it ignores": BEGIN
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGTERM)
ran("end")
""",
    "SIGTERM from a child": BEGIN
    + """
signal.signal(signal.SIGTERM, lambda *_: ran("TERM"))
subprocess.run(["sh", "-c", "kill -TERM $PPID"])
time.sleep(0.2)
ran("end")
""",
    "KeyboardInterrupt that it catches": BEGIN
    + """
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    ran("caught")
""",
    "SIGCHLD": BEGIN
    + """
signal.signal(signal.SIGCHLD, lambda *_: ran("CHLD"))
subprocess.run(["true"])
ran("end")
""",
    "a timer": BEGIN
    + """
signal.signal(signal.SIGALRM, lambda *_: ran("ALRM"))
signal.setitimer(signal.ITIMER_REAL, 0.1)
time.sleep(0.5)
ran("end")
""",
    "exec of itself": HEAD
    + """
if "again" not in sys.argv:
    f(torch.ones(3))
    ran("first")
    os.execv(sys.executable, [sys.executable, __file__, "again"])
f(torch.ones(4))
ran("second")
sys.exit(3)
""",
    "exec before anything is compiled": HEAD
    + """
if "AGAIN" not in os.environ:
    os.execve(sys.executable, [sys.executable, __file__], {**os.environ, "AGAIN": "1"})
f(torch.ones(4))
ran("second")
""",
    "exec of a program that takes long": BEGIN
    + """
ran("first")
os.execvp("sh", ["sh", "-c", "sleep 7; echo after; echo second >> trace; exit 4"])
""",
    "exec of echo": BEGIN
    + """
ran("first")
os.execl("/bin/echo", "echo", "hello")
""",
    "exec that fails": BEGIN
    + """
try:
    os.execv("/no/such/program", ["x"])
except OSError as error:
    ran(type(error).__name__)
f(torch.ones(5))
ran("end")
sys.exit(2)
""",
    "fork and exec": BEGIN
    + """
pid = os.fork()
if not pid:
    os.execv("/bin/sh", ["sh", "-c", "echo child >> trace; exit 5"])
ran(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""",
    "a thread that goes on": BEGIN
    + """
def work():
    time.sleep(0.5)
    ran("thread")
threading.Thread(target=work).start()
atexit.register(ran, "atexit")
ran("end")
""",
    "executors": HEAD
    + """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def work(what, seconds):
    time.sleep(seconds)
    ran(what)
if __name__ == "__main__":
    f(torch.ones(3))
    processes, pool = ProcessPoolExecutor(1), ThreadPoolExecutor(2)
    processes.submit(work, "process", 0.5)
    for at in range(4):
        pool.submit(work, at // 2, 2 + at // 2)
    forgotten = ThreadPoolExecutor(1)
    forgotten.submit(work, "forgotten", 1)
    del forgotten
    ran("end")
""",
    "a thread that raises": BEGIN
    + """
threading.excepthook = lambda args: ran(args.exc_type.__name__)
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
ran("end")
""",
    "which threads there are": BEGIN
    + """
ran([each.name for each in threading.enumerate()])
""",
    "atexit in order": BEGIN
    + """
def more():
    atexit.register(ran, "registered late")
    ran("third")
def removed():
    ran("removed")
def late():
    ran("late")
atexit.register(late)
atexit.register(ran, "first")
atexit.register(lambda: atexit.unregister(late))
atexit.register(more)
atexit.register(removed)
atexit.unregister(removed)
ran("end")
""",
    "atexit that raises and exits": BEGIN
    + """
@atexit.register
def bad():
    ran("raises")
    raise ValueError("bad")
@atexit.register
def leaves():
    ran("leaves")
    sys.exit(7)
ran("end")
""",
    "atexit after an error": BEGIN
    + """
atexit.register(ran, "atexit")
sys.exit("it is over")
""",
    "finalizers": BEGIN
    + """
import tempfile, weakref
weakref.finalize(f, ran, "finalized")
folder = tempfile.TemporaryDirectory()
weakref.finalize(folder, lambda: ran(os.path.isdir(folder.name)))
ran("end")
""",
    "os._exit": BEGIN
    + """
atexit.register(ran, "atexit")
ran("end")
os._exit(9)
""",
    "what a child sees": BEGIN
    + """
see = "import os, sys; print(sorted(os.environ), sys.path, sys.argv); raise SystemExit(3)"
ran(subprocess.run([sys.executable, "-c", see], capture_output=True, text=True))
""",
    "a child that outlives it": BEGIN
    + """
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
subprocess.Popen(["sh", "-c", "sleep 2; echo child >> trace"], start_new_session=True, **quiet)
ran("end")
""",
    "multiprocessing by fork": HEAD
    + """
import multiprocessing
if __name__ == "__main__":
    f(torch.ones(3))
    child = multiprocessing.get_context("fork").Process(target=ran, args=("child",))
    child.start()
    child.join()
    ran(child.exitcode)
""",
    "multiprocessing by spawn": HEAD
    + """
import multiprocessing
def work():
    ran(f"child {float(f(torch.ones(2)).sum()):.3f}")
if __name__ == "__main__":
    f(torch.ones(3))
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
    ran(child.exitcode)
""",
    "a fork that goes on to the end": BEGIN
    + """
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
f(torch.ones(4))
ran("end")
""",
    "descriptors closed": BEGIN
    + """
os.closerange(3, 256)
f(torch.ones(4))
ran("end")
""",
    "stdin, and no stdout": BEGIN
    + """
ran(sys.stdin.read())
sys.stdout = None
f(torch.ones(4))
ran("end")
""",
    "what Python is set to": BEGIN
    + """
ran((sys.getrecursionlimit(), os.umask(0o22), os.getcwd(), sys.argv, sys.path[0], __name__, os.nice(0)))
ran((sys.gettrace(), sys.getprofile(), sys.excepthook is sys.__excepthook__, signal.getsignal(signal.SIGTERM)))
""",
}


ABOUT_TORCH = ("which threads there are", "multiprocessing by spawn", "what Python is set to")
"""Their traces depend on torch as well. The others run without it where they run plainly, as it takes seconds."""


def run(command: list[str], folder: Path, text: str) -> tuple[int, str, str]:
    """The exit status, the trace of what ran, and what was printed."""
    folder.mkdir()
    (folder / "program.py").write_text(text)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PWD": str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, input="typed\n", timeout=500)
    if "sleep 2; echo child" in text:
        time.sleep(4)
    trace = folder / "trace"
    return done.returncode, re.sub(r"0x[0-9a-f]+", "0x", trace.read_text() if trace.exists() else ""), done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_runs_is_what_runs_without_idbg(name: str, tmp_path: Path) -> None:
    text = PROGRAMS[name]
    plain = text if name in ABOUT_TORCH else text.replace(COMPILED, NOT_COMPILED)
    status, trace, printed = run([sys.executable, "program.py"], tmp_path / "program", plain)
    (tmp_path / "program").rename(tmp_path / "plain")
    found = run([sys.executable, "-m", "idbg", "run", "program.py"], tmp_path / "program", text)
    assert found[:2] == (status, trace)
    assert printed in found[2]
