"""Kernels that are built in a moment: `build N...` loads each; `kill N SEED` kills N builds, each at a random moment;
the rest is one question each.

With IDBG_SCRATCH in the environment compilers write as those of a run do, and without as in plain Python.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import torch._inductor.codecache as codecache
import torch._inductor.config as config
import torch._inductor.cpp_builder as cpp_builder
import torch._inductor.cpu_vec_isa as cpu_vec_isa

from idbg.engine.compat.builds import scratch

SOURCE = 'extern "C" int kernel() {{ return {number}; }}'


def build(number: int) -> int:
    library = codecache.CppCodeCache.load(SOURCE.format(number=number))
    return int(library.kernel())


def kill(count: int, seed: int) -> None:
    """Each build is a process with a group of its own, which a SIGKILL ends, as the end of a host does."""
    build(-1)  # what torch asks the compiler only once
    began = time.monotonic()
    _forked(lambda: build(-2), None)
    seconds, moments = time.monotonic() - began, random.Random(seed)
    for number in range(count):
        _forked(lambda number=number: build(number), moments.uniform(0, 1.1 * seconds))


def _forked(work, moment: float | None) -> None:
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        try:
            work()
        finally:
            os._exit(0)
    if moment is not None:
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):  # not a group yet, or no longer
            os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def isa() -> None:
    print(*cpu_vec_isa.valid_vec_isa_list(), cpu_vec_isa.pick_vec_isa())


def pool() -> None:
    """What runs compilers in the processes of torch's pool."""
    from torch._inductor.async_compile import AsyncCompile

    what = "type(__import__('torch._inductor.cpp_builder', fromlist=['_']).subprocess).__name__"
    print(AsyncCompile.process_pool().submit(eval, what).result(120))


def driver() -> None:
    """A driver that is killed, and leaves a child with its output pipe."""
    script = "sleep 1000 & echo $!; kill -KILL $$"
    done = cpp_builder.subprocess.run(  # type: ignore[attr-defined]
        ["/bin/sh", "-c", script, "-o", "/nowhere/made"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    print(done.returncode, done.stdout.decode())


def main() -> None:
    """Builds ask the compiler for one kernel and nothing else, but where the question is what the processor can."""
    config.cpp_cache_precompile_headers = False
    config.cpp.vec_isa_ok = None if sys.argv[1] == "isa" else True
    scratch.begin()
    match sys.argv[1]:
        case "kill":
            kill(int(sys.argv[2]), int(sys.argv[3]))
        case "isa":
            isa()
        case "pool":
            pool()
        case "driver":
            driver()
        case "broken":
            codecache.CppCodeCache.load("this is no C++")
        case _:
            for number in map(int, sys.argv[2:]):
                print(number, build(number), flush=True)


if __name__ == "__main__":
    main()
