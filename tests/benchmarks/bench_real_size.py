"""What does it take to compare a language model of real size, per kernel, beside plain torch? Run by hand.

    python tests/benchmarks/bench_real_size.py [--device cuda] [--model gpt2|llama-1b|llama-7b|lora-7b] [--memory SIZE]
        [--fraction SHARE]

Each row is a process of its own: plain torch (compiled, one step), the comparison without a limit, and with `--memory`
on the waiting float64 (on a CPU), or with the device limited to `--fraction` of its memory (on CUDA). Peak memory is
the process's, on CUDA the allocator's. Seconds and memory are also printed as ratios, with the stages and launches that
were judged.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import torch
from torch import nn

from idbg import KernelDiff
from idbg.config.settings import bytes_of
from idbg.format.amounts import size

ROWS = ("plain", "compared", "limited")


@dataclass
class Row:
    """What one process measured."""

    seconds: float
    peak: int
    verdict: str = ""
    stages: str = ""
    launches: str = ""


def model_of(name: str, device: str) -> tuple[nn.Module, torch.Tensor]:
    """The model with random weights, and its tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    with torch.device(device):
        if name == "gpt2":
            config = GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False)
            return GPT2LMHeadModel(config).train(), torch.randint(0, 50257, (1, 256))
        wide = name != "llama-1b"
        config = LlamaConfig(
            hidden_size=4096 if wide else 2048,
            intermediate_size=11008 if wide else 5632,
            num_hidden_layers=32 if wide else 22,
            num_attention_heads=32,
            num_key_value_heads=32 if wide else 4,
            use_cache=False,
        )
        torch.set_default_dtype(torch.bfloat16)
        model: nn.Module = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
        if name == "lora-7b":
            from peft import LoraConfig, get_peft_model

            model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0))
        return model, torch.randint(0, 32000, (1 if wide else 2, 1024))


def measured(row: str, args: argparse.Namespace) -> Row:
    """Run one row in this process."""
    if row == "limited" and args.device == "cuda":
        torch.cuda.set_per_process_memory_fraction(args.fraction)
    model, ids = model_of(args.model, args.device)
    trains = args.model != "llama-7b"
    inputs = {"input_ids": ids, "labels": ids} if trains else {"input_ids": ids}
    limit = bytes_of(args.memory) if row == "limited" and args.device == "cpu" else 0
    began = time.perf_counter()
    if row == "plain":
        with torch.set_grad_enabled(trains):
            out = torch.compile(model)(**inputs)
        if trains:
            out.loss.backward()
        return Row(time.perf_counter() - began, _peak(args.device))

    def begins(side: str) -> None:
        print(f"{time.perf_counter() - began:.0f} s: {side}", file=sys.stderr, flush=True)

    report = KernelDiff(model, inputs, backward=trains, per_kernel=True, memory=limit, on_side=begins).compare()
    judged = [stage for stage in report.stages if stage.judged or stage.stage not in ("dynamo", "post_grad", "kernels")]
    errors = [kernel for kernel in report.kernels if kernel.error is not None]
    return Row(
        time.perf_counter() - began,
        _peak(args.device),
        report.verdict,
        f"{len(judged)} of {len(report.stages)}",
        f"{len(errors)} of {len(report.kernels)}",
    )


def _peak(device: str) -> int:
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Print every row beside plain torch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="gpt2", choices=["gpt2", "llama-1b", "llama-7b", "lora-7b"])
    parser.add_argument("--memory", default="256 MiB")
    parser.add_argument("--fraction", type=float, default=0.17)
    parser.add_argument("--row", choices=ROWS)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    args = parser.parse_args()
    if args.row:
        print(json.dumps(asdict(measured(args.row, args))))
        return 0
    plain: Row | None = None
    for row in args.rows:
        command = [sys.executable, __file__, *sys.argv[1:], "--row", row]
        done = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ, check=False, text=True)
        if done.returncode:
            print(f"{row}: ended with status {done.returncode}")
            continue
        found = Row(**json.loads(done.stdout.splitlines()[-1]))
        plain = plain or found
        beside = f"{found.peak / plain.peak:.2f} x the memory, {found.seconds / plain.seconds:.2f} x the time of plain"
        print(f"{row:10} {size(found.peak):>10} {found.seconds:8.1f} s   {beside}   {found.verdict}", end="")
        print(f"   stages {found.stages}, launches {found.launches}" if found.stages else "", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
