"""Start a child in each way of multiprocessing; each compiles, and ends by an exception of its compile."""

import multiprocessing
from typing import Any


def broken(gm: Any, inputs: Any) -> Any:
    raise ValueError("this backend is broken")


def fails(rank: int = 0) -> None:
    import torch

    torch.compile(lambda x: (x * 2).relu(), backend=broken)(torch.ones(4))


def main() -> None:
    import torch.multiprocessing

    context: Any
    torch_processes: Any = torch.multiprocessing
    for method in ("spawn", "fork", "forkserver"):
        context = multiprocessing.get_context(method)
        child = context.Process(target=fails, name=f"Engine_{method}")
        child.start()
        child.join()
        print(method, child.exitcode, flush=True)
    try:
        torch_processes.spawn(fails)
    except torch_processes.ProcessRaisedException:
        print("raised", flush=True)


if __name__ == "__main__":
    main()
