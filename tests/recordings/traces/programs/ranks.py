"""Two ranks of a job: both train a model under DDP, and rank 1 computes one thing more."""

import multiprocessing
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

RANKS = 2


def rank(index: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1] if len(sys.argv) > 1 else "29517")
    dist.init_process_group("gloo", rank=index, world_size=RANKS)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
    compiled = torch.compile(model)
    loss = compiled(torch.randn(4, 8)).sum()
    loss.backward()
    if index == 1:
        torch.compile(lambda x: x * 2)(torch.ones(4))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = [multiprocessing.get_context("spawn").Process(target=rank, args=(index,)) for index in range(RANKS)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
