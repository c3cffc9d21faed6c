"""Start children in each way that Python has; each compiles and prints what it sees of its own surroundings."""

import multiprocessing
import os
import subprocess
import sys
from typing import Any


def surroundings() -> str:
    """What a program could notice of idbg: variables, import paths, hooks, and an own sitecustomize."""
    seen = sorted(name for name in os.environ if name.startswith(("IDBG", "TORCH_TRACE", "PYTHON")))
    own = getattr(sys.modules.get("sitecustomize"), "MINE", None)
    return f"{seen} {len(sys.path)} {sys.path[0]} {own} {sys.argv[1:]}"


def compiled(way: str) -> float:
    """Compile, in this process."""
    import torch

    def double_relu(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu()

    function = torch.compile(double_relu, backend="eager")
    result = float(function(torch.ones(4)).sum())
    print(f"{way}: {result} {surroundings()}", flush=True)
    return result


def idle(way: str) -> None:
    """Compile nothing."""
    print(f"{way}: {surroundings()}", flush=True)


def fails(way: str) -> None:
    compiled(way)
    sys.exit(7)


def main() -> None:
    context: Any
    for method in ("spawn", "fork", "forkserver"):
        context = multiprocessing.get_context(method)
        children = [
            context.Process(target=compiled, args=(method,), name=f"Engine_{method}"),
            context.Process(target=idle, args=(f"idle {method}",)),
        ]
        if method == "spawn":
            children.append(context.Process(target=fails, args=("failing",), name="Failing"))
        for child in children:  # one after another: what they print has an order
            child.start()
            child.join()
        print(method, [child.exitcode for child in children], flush=True)
    command = [sys.executable, __file__, "child"]
    cleared = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        cleared["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TORCHINDUCTOR_CACHE_DIR"]
    print("cleared", subprocess.run([*command, "cleared"], env=cleared).returncode, flush=True)
    print("system", os.system(f"{sys.executable} {__file__} child system"), flush=True)
    killed = subprocess.run([*command, "killed"])
    print("killed", killed.returncode, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        compiled(sys.argv[2])
        if sys.argv[2] == "killed":
            os.kill(os.getpid(), 9)
    else:
        main()
