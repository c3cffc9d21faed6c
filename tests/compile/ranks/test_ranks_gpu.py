"""The examples of distributed jobs run on NCCL, and what differs between ranks on two GPUs is found."""

from pathlib import Path

import pytest
import torch

from tests.harness.jobs import JobReport, compare_script, run_script

EXAMPLES = Path(__file__).parents[3] / "examples" / "distributed"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]

SETUP = """
import datetime, os, signal, time
import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
rank = dist.get_rank()
device = torch.device("cuda", local_rank)
"""


def run(body: str, folder: Path) -> JobReport:
    script = folder / "train.py"
    script.write_text(SETUP + body)
    return run_script(script, folder)


def line_of(folder: Path, text: str) -> int:
    lines = (folder / "train.py").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tensor_parallel"])
def test_data_and_tensor_parallel_ranks_are_equal(tmp_path: Path, name: str) -> None:
    found = run_script(EXAMPLES / f"{name}.py", tmp_path)
    assert found.status == 0, found.output[-3000:]
    stops = [each for each in found.record["differences"] if each["level"] == "error"]
    graphs = found.differences("graph") + found.differences("absent")
    assert stops == [] and graphs == [], found.record["differences"]
    assert all(each["frames"] for each in found.record["ranks"])
    assert all(each["collectives"] for each in found.record["ranks"]), "NCCL's flight recorder was read"


def test_stages_of_a_pipeline_have_different_graphs(tmp_path: Path) -> None:
    found = run_script(EXAMPLES / "pipeline.py", tmp_path)
    assert found.status == 0, found.output[-3000:]
    first = found.differences("graph")[0]
    assert "relu" in first["sentence"] and "sigmoid" in first["sentence"]
    assert not [each for each in found.record["differences"] if each["level"] == "error"]


EQUAL_BUT_FOR_THE_DEVICE = """
@torch.compile
def step(x):
    return (x * 2).relu().sum()

step(torch.ones(64, 64, device=device))
dist.barrier()
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def test_kernels_on_two_devices_are_equal(tmp_path: Path) -> None:
    found = run(EQUAL_BUT_FOR_THE_DEVICE, tmp_path)
    assert found.status == 0, found.output[-3000:]
    assert found.record["groups"] == [[0, 1]], found.record["differences"]
    row = found.record["frames"][0]
    assert row["groups"][0][1]["kernels"]["count"] >= 1


BRANCH = """
@torch.compile
def step(x, rank):
    if rank == 0:
        return x.sin()  # rank 0
    return x.cos()  # rank 1

step(torch.ones(64, device=device), rank)
dist.barrier()
dist.destroy_process_group()
"""


def test_a_branch_on_the_rank(tmp_path: Path) -> None:
    found = run(BRANCH, tmp_path)
    first = found.differences("graph")[0]
    assert {side["line"] for side in first["sides"]} == {line_of(tmp_path, "# rank 0"), line_of(tmp_path, "# rank 1")}


HANGS = """
@torch.compile
def step(x):
    return x.relu()

x = step(torch.ones(64, device=device))
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 1:
    time.sleep(90)  # stands here
dist.all_reduce(x)  # waits here
torch.cuda.synchronize()
"""


def test_a_rank_that_hangs_in_a_collective(tmp_path: Path) -> None:
    found = run(HANGS, tmp_path)
    assert found.status != 0
    first = found.differences("wait")[0]
    waits, late = first["sides"]
    assert waits["ranks"] == [0] and waits["line"] == line_of(tmp_path, "# waits here")
    assert first["to_ranks"] == [1] and late["line"] == line_of(tmp_path, "# stands here")


KILLED = """
x = torch.ones(64, device=device)
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(x)
torch.cuda.synchronize()
"""


def test_a_rank_that_is_killed(tmp_path: Path) -> None:
    found = run(KILLED, tmp_path)
    assert found.status != 0
    first = found.differences("ended")[0]
    assert first["sides"][0]["ranks"] == [1] and "SIGKILL" in first["sentence"]


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tensor_parallel", "pipeline"])
def test_numbers_of_the_examples_agree_in_all_ranks(tmp_path: Path, name: str) -> None:
    found = compare_script(EXAMPLES / f"{name}.py", tmp_path)
    assert found.status == 0, (found.record["differences"], found.output[-3000:])
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "agree"]
    assert all(each["compared"] >= 4 for each in found.record["ranks"]), "outputs and gradients"


PARTED = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import torch.distributed._functional_collectives as functional

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x).relu()

torch.manual_seed(0)
model = Model().to(device)
parallel = DistributedDataParallel(model, device_ids=[local_rank])
step = torch.compile(model)  # and not the parallel one: gradients are not averaged
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
for turn in range(2):
    step(torch.full((32, 64), float(rank + 1), device=device)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

@torch.compile
def reduced(x):
    return functional.all_reduce(torch.nn.functional.softmax(x, -1), "sum", dist.group.WORLD) + 1

reduced(torch.randn(32, 64, device=device))
dist.destroy_process_group()
"""


def test_replicas_that_part_are_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SETUP + PARTED)
    found = compare_script(script, tmp_path)
    parted = found.differences("replica")
    assert parted and {each["number"] for each in parted} == {2} and "weight" in parted[0]["what"]
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "agree"], found.record["differences"]
    assert found.status == 1 and not found.differences("result")


WRONG_IN_RANK_1 = """
import os, runpy
import torch
import torch._inductor.config as config

aten = torch.ops.aten
WRONG = (aten.relu.default, aten.addmm.default, aten.mm.default)

def wrong(graph):  # the pass
    for node in graph.find_nodes(op="call_function", target=WRONG[0]) or [n for n in graph.nodes if n.target in WRONG]:
        with graph.inserting_after(node):
            scaled = graph.call_function(aten.mul.Tensor, (node, 1.05))
        scaled.meta = dict(node.meta)
        node.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)
        return

if os.environ["RANK"] == "1":
    config.post_grad_custom_post_pass = wrong
runpy.run_path({example!r}, run_name="__main__")
"""


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tensor_parallel", "pipeline"])
def test_a_wrong_pass_in_one_rank_of_the_examples(tmp_path: Path, name: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(WRONG_IN_RANK_1.format(example=str(EXAMPLES / f"{name}.py")))
    found = compare_script(script, tmp_path)
    wrong = found.differences("numbers")
    assert wrong and {tuple(each["sides"][0]["ranks"]) for each in wrong} == {(1,)}, found.record["differences"]
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "wrong"]
    assert found.status == 1


TRAINED = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True, dropout=0.1)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(16, 4)

    def forward(self, x):
        tokens = self.norm(self.conv(x)).relu().flatten(2).transpose(1, 2)
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return self.head(self.drop(mixed).mean(1))

torch.manual_seed(0)
model = DistributedDataParallel(Net().to(device), device_ids=[local_rank])
step = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(rank)
for turn in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        loss = step(torch.randn(8, 3, 16, 16, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    if SCALE_IN_RANK_1 and rank == 1:
        with torch.no_grad():
            model.module.head.weight.mul_(1.001)  # the fault: of one replica alone
    optimizer.zero_grad()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("is_faulty", [False, True], ids=["right", "a_parameter_parts"])
def test_a_training_in_bfloat16_with_dropout_and_convolutions(tmp_path: Path, is_faulty: bool) -> None:
    script = tmp_path / "train.py"
    script.write_text(SETUP + f"SCALE_IN_RANK_1 = {is_faulty}\n" + TRAINED)
    found = compare_script(script, tmp_path)
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "agree"], found.output[-3000:]
    parted = found.differences("replica")
    assert bool(parted) == is_faulty and found.status == int(is_faulty), found.record["differences"]
    assert not is_faulty or "head" in parted[0]["what"]


ORDER = """
a, b = torch.ones(8, device=device), torch.ones(8, device=device)
dist.all_reduce(a)
torch.cuda.synchronize()
if rank == 0:
    dist.broadcast(a, 0)  # rank 0
    dist.all_reduce(b)
else:
    dist.all_reduce(b)  # rank 1
    dist.broadcast(a, 0)
torch.cuda.synchronize()
"""


def test_a_collective_out_of_order(tmp_path: Path) -> None:
    found = run(ORDER, tmp_path)
    first = found.differences("collective")[0]
    assert {side["line"] for side in first["sides"]} == {line_of(tmp_path, "# rank 0"), line_of(tmp_path, "# rank 1")}
    assert first["number"] == 2


TRAINER = """
import torch, tempfile
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
torch.manual_seed(0)
config = BertConfig(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=500,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)
model = BertForSequenceClassification(config)
data = [{"input_ids": torch.randint(3, 500, (32,)), "labels": torch.tensor(i % 2)} for i in range(32)]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), max_steps=3, per_device_train_batch_size=8, torch_compile=True, report_to=[],
    logging_steps=1, save_strategy="no", disable_tqdm=True,
)
print("trainer loss", round(Trainer(model=model, args=arguments, train_dataset=data).train().training_loss, 4))
"""


def test_a_trainer_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    script = tmp_path / "train.py"
    script.write_text(TRAINER)
    found = run_script(script, tmp_path)
    assert found.status == 0, found.output[-3000:]
    assert not [each for each in found.record["differences"] if each["level"] == "error"]
    assert all(each["frames"] for each in found.record["ranks"])
