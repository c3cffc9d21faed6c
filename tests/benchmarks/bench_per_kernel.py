"""How long does `idbg diff --per-kernel` of a program take, beside the same program that torch alone compiles and runs?

Run: python tests/benchmarks/bench_per_kernel.py [LAYERS]. A GPT of 6 layers in training, forward and backward, on CUDA
where there is a GPU. Each is a process of its own, its imports included: with torch's caches empty, then once more,
after one that reads torch's files from the disk. The bound is 20 s on an H200 for the one with caches empty. Below it
stands when each step of the comparison began, by its events.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, size=384, heads=6):
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(size), nn.LayerNorm(size)
        self.taken, self.given = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.forward_layer = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x):
        q, k, v = self.taken(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.given(seen.transpose(1, 2).flatten(2))
        return x + self.forward_layer(self.after(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(1000, 384), nn.Parameter(torch.zeros(256, 384))
        self.blocks, self.head = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.Linear(384, 1000)

    def forward(self, words):
        return self.head(self.blocks(self.words(words) + self.places))


def program():
    torch.manual_seed(0)
    return GPT().to(DEVICE), (torch.randint(0, 1000, (4, 256), device=DEVICE),), loss


def loss(output):
    return output.logsumexp(-1).mean()
"""
PLAIN = """
model, arguments, _ = program()
loss(torch.compile(model)(*arguments)).backward()
torch.cuda.synchronize() if DEVICE == "cuda" else None
"""


def seconds(command: list[str], folder: Path, caches: Path) -> float:
    """From start to end, with torch's caches in this folder."""
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(caches), "TRITON_CACHE_DIR": str(caches / "triton")}
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def steps(sessions: Path, began: float) -> str:
    """When the events of the newest session came, in seconds from `began`."""
    newest = max(sessions.rglob("events.jsonl"), key=lambda file: file.stat().st_mtime)
    named = {"session_opened", "worker_started", "side_started", "side_ended", "compared", "run_ended"}
    first = {"frame_started", "graph_captured", "code_captured"}
    found = []
    for event in map(json.loads, newest.read_text().splitlines()):
        if event["type"] in named | first:
            first.discard(event["type"])
            name = event.get("side", "") if isinstance(event.get("side"), str) else ""
            found.append(f"{event['type']} {name}".strip() + f" {event['at'] - began:.1f}")
    return ", ".join(found)


def main() -> None:
    """Print each beside torch alone."""
    layers = int(sys.argv[1]) if sys.argv[1:] else 6
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        text = PROGRAM.replace("LAYERS", str(layers))
        (folder / "gpt.py").write_text(text)
        (folder / "plain.py").write_text(text + PLAIN)
        compared = [sys.executable, "-m", "idbg", "diff", "gpt.py", "--per-kernel", "--output", "sessions"]
        plain = [sys.executable, "plain.py"]
        seconds(plain, folder, folder / "first")
        for caches in ("empty", "filled"):
            alone = seconds(plain, folder, folder / "caches-0")
            began = time.time()
            all_of_it = seconds(compared, folder, folder / "caches-1")
            print(f"caches {caches}: torch alone {alone:.1f} s, idbg diff --per-kernel {all_of_it:.1f} s, ", end="")
            print(f"{all_of_it / alone:.2f} times; {all_of_it - alone:.1f} s more")
            print(f"    {steps(folder / 'sessions', began)}", flush=True)


if __name__ == "__main__":
    main()
