"""A server like vLLM's: a front end spawns an engine core, which compiles a model and answers requests over queues."""

import multiprocessing
import sys
from typing import Any


def engine_core(requests: Any, answers: Any) -> None:
    """Compile at the first request of each batch size; answer until None comes."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    step = torch.compile(model, backend="aot_eager", dynamic=False)
    answers.put("ready")
    while (batch := requests.get()) is not None:
        with torch.no_grad():
            answers.put(float(step(torch.ones(batch, 8)).sum()))


def main() -> None:
    context: Any = multiprocessing.get_context("spawn")
    requests, answers = context.Queue(), context.Queue()
    engine = context.Process(target=engine_core, args=(requests, answers), name="EngineCore_DP0", daemon=True)
    engine.start()
    print(answers.get(timeout=300), flush=True)
    for batch in (1, 4, 1):
        requests.put(batch)
        print(batch, answers.get(timeout=300), flush=True)
    if sys.argv[1:] == ["killed"]:
        engine.kill()
    else:
        requests.put(None)
    engine.join()
    print("exit code", engine.exitcode, flush=True)


if __name__ == "__main__":
    main()
