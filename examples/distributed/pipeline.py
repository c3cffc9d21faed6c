"""Pipeline parallel: each rank computes one stage, and sends its results to the next. Their graphs differ.

torchrun --nproc-per-node 2 examples/distributed/pipeline.py
"""

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class Part(nn.Module):
    """One stage: the last has another activation."""

    def __init__(self, *, is_last: bool) -> None:
        super().__init__()
        self.linear, self.is_last = nn.Linear(16, 16), is_last

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return torch.sigmoid(y) if self.is_last else torch.relu(y)


def main() -> None:
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    torch.manual_seed(rank)
    part = Part(is_last=rank + 1 == size).to(device)
    part.compile()
    stage = PipelineStage(part, rank, size, device)
    schedule = ScheduleGPipe(stage, n_microbatches=2)
    for _ in range(2):
        found = schedule.step(torch.randn(8, 16, device=device)) if rank == 0 else schedule.step()
    print(f"rank {rank}: {'output ' + str(tuple(found.shape)) if rank + 1 == size else 'sent'}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
