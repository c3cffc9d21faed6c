"""The server that forks a process for each script: `python -P -m idbg.engine.minify.forks.server FD warm|cold
VARIABLES BACKEND`. FD is a socket; VARIABLES, as JSON, are added to the scripts' environment.

A warm server has torch, its compilers and the package of BACKEND ("" of none) imported, but no device initialized and
nothing computed: a CUDA driver and GNU OpenMP's threads do not survive a fork. A cold server has imported nothing, and
runs each script in a new Python.

To `{"script": ...}`, sent with the descriptor to print to, it answers `{"pid": ...}`, and `{"ended": status}` when the
script has ended; to `{"over": patience}`, after ending all processes that the script left, `{"over": true}`. If its
host is gone, it ends all its processes and itself.
"""

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from types import FrameType
from typing import NoReturn

from idbg.engine.compat.builds import scratch
from idbg.engine.minify.forks.become import become, detach
from idbg.engine.minify.forks.processes import end_all, process

LARGEST = 1 << 17  # bytes of a message
ADOPTS = 36  # prctl's PR_SET_CHILD_SUBREAPER: orphans of a script become children of this process
ALONE = "idbg.engine.program.main_file"
TIDY_SECONDS = 0.5  # for processes to clean up after SIGTERM
LOOK_SECONDS = 1.0  # between two checks that the host is alive


def main() -> None:
    """Serve until the host is gone."""
    channel, is_warm = socket.socket(fileno=int(sys.argv[1])), sys.argv[2] == "warm"
    channel.set_inheritable(False)
    host = os.getppid()
    ctypes.CDLL(None).prctl(ADOPTS, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, _nothing)
    can_fork = _warm_up(sys.argv[4]) if is_warm else True
    os.environ |= json.loads(sys.argv[3])
    channel.send(json.dumps({"ready": can_fork}).encode())
    try:
        _serve(channel, host, is_warm, (wake_read, wake_write))
    except OSError:  # the host ended while a message was sent
        _leave()


def _serve(channel: socket.socket, host: int, is_warm: bool, wakes: tuple[int, int]) -> NoReturn:
    running = 0
    while True:
        ready, _, _ = select.select([channel.fileno(), wakes[0]], [], [], LOOK_SECONDS)
        if os.getppid() != host:
            _leave()
        if wakes[0] in ready:
            _drained(wakes[0])
            if running and (status := _ended(running)) is not None:
                running = 0
                channel.send(json.dumps({"ended": status}).encode())
        if channel.fileno() not in ready:
            continue
        message, files, _, _ = socket.recv_fds(channel, LARGEST, 1)
        if not message:
            _leave()
        order = json.loads(message)
        if "over" in order:
            _end_what_is_left(order["over"])
            running = 0
            channel.send(b'{"over": true}')
            continue
        running = os.fork()
        if not running:
            signal.set_wakeup_fd(-1)
            for each in (channel.detach(), *wakes):
                os.close(each)
            _be(order, files[0], is_warm)
        os.close(files[0])
        channel.send(json.dumps({"pid": running}).encode())


def _warm_up(backend: str) -> bool:
    """Import what a compile needs; returns whether this process can still be forked."""
    from idbg.engine.compat.warming import has_a_driver, import_backend, warm_up

    scratch.begin()
    gc.disable()
    warm_up()
    import_backend(backend)
    gc.freeze()  # children neither traverse nor copy it
    gc.enable()
    return not has_a_driver()


def _be(order: dict[str, object], output: int, is_warm: bool) -> NoReturn:
    """Run the script in the child."""
    script, cwd = str(order["script"]), str(order["cwd"])
    arguments, path = [[str(word) for word in order[name]] for name in ("arguments", "path")]  # type: ignore[attr-defined]
    if order["eager"]:
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    try:
        detach(output)
        if is_warm:
            become(script, arguments, path, cwd)
        os.chdir(cwd)
        os.execv(sys.executable, [sys.executable, "-u", "-P", "-m", ALONE, json.dumps(path), script, *arguments])
    except BaseException as error:  # the server's code must not continue in a child
        os.write(2, f"idbg: {error}\n".encode())
    os._exit(1)


def _ended(pid: int) -> int | None:
    """The return code as `subprocess` defines it; None while it runs. It is not reaped, to keep its number."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _end_what_is_left(patience: float) -> None:
    """End and reap all processes that this one forked or adopted."""
    me = process(os.getpid())
    assert me is not None
    end_all(me, patience)
    deadline = time.monotonic() + 1.0
    with contextlib.suppress(ChildProcessError):  # none is left
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.005)


def _drained(pipe: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(pipe, 4096):
            pass


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler that lets the signal wake `select`."""


def _leave() -> NoReturn:
    _end_what_is_left(TIDY_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()
