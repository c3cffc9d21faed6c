"""Programs that break rules of every kind at nodes of every kind, and the repro of a selection of their violations.

`python violating.py FOLDER` writes the scripts, and prints a line of JSON for each: program, rule, stage, node, script.
`python violating.py FOLDER run` runs those of its standard input, each in a process of its own that is forked from one
with torch and idbg alone, and prints how each ended.
"""

import contextlib
import io
import json
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path

RULES = """\
[[rules]]
kind = "dtype"
allowed = ["float8_e5m2"]
[[rules]]
kind = "rank"
max = 0
[[rules]]
kind = "max_dim"
max = 1
[[rules]]
kind = "alignment"
multiple = 64
[[rules]]
kind = "layout"
formats = ["channels_last_3d"]
weights = true
[[rules]]
kind = "memory"
max_bytes = 3
[[rules]]
kind = "unsupported_ops"
deny = ["*"]
[[rules]]
kind = "same_dtype"
[[rules]]
kind = "static_shapes"
[[rules]]
kind = "constant_operand"
ops = ["mm", "linear", "convolution", "conv2d", "matmul", "bmm"]
position = 1
[[rules]]
kind = "matmul_tile"
m = 64
k = 64
n = 64
severity = "reject"
[[rules]]
kind = "window"
max_height = 1
[[rules]]
kind = "leading_dims"
free = 1
[[rules]]
kind = "weights_memory"
max_bytes = 1
[[rules]]
kind = "peak_memory"
max_bytes = 1
"""
OPS = """\
@torch.library.custom_op("violating::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
@twice.register_fake
def _(x):
    return torch.empty_like(x)
@torch.library.custom_op("violating::both", mutates_args=())
def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x * 2, x.sum(0)
@both.register_fake
def _(x):
    return torch.empty_like(x), x.new_empty(x.shape[1:])
@torch.library.custom_op("violating::fill", mutates_args=("out",))
def fill(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x)
"""
SCALE = """\
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        return x * by, x.cos()
    @staticmethod
    def backward(ctx, grad, other):
        return grad * ctx.by - other, None
"""
NET = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
        self.linear, self.scale = torch.nn.Linear(4, 5), torch.nn.Parameter(torch.ones(5))
        self.register_buffer("shift", torch.zeros(5))
    def forward(self, x):
        y = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        return self.linear(y.mean((2, 3))) * self.scale + self.shift
net = Net()
"""
X, TRAINED = "torch.randn(4, 6)", "torch.randn(4, 6, requires_grad=True)"
LOSS = ", lambda out: out.sum()"
# head, body of f(x, y), arguments, loss
PROGRAMS: dict[str, tuple[str, str, str, str]] = {
    "operators": ("", "return x + y, x - y, x * 2, x / y, -x, x ** 2, x @ y.T, x > y, ~(x > y)", f"{X}, {X}", ""),
    "items": ("", "z = x.clone()\nz[0] = y[1]\nz[:, 1:3] += 1\nreturn z[1:, ..., None], z[y > 0]", f"{X}, {X}", ""),
    "methods": ("", "return x.view(6, 4).t().expand(2, 4, 6), x.flatten().sum(), x.type(torch.int64)", f"{X}, {X}", ""),
    "several results": (
        "",
        "v, i = x.max(1)\na, b = x.split(2)\nt = torch.topk(y, 2)\nreturn v, i, a, b, t.values, torch.var_mean(x, 1)",
        f"{X}, {X}",
        "",
    ),
    "in place": (
        "",
        "z = x.sin()\nz.add_(y).relu_()\nz.copy_(y)\ntorch.exp(z, out=z)\nreturn x.mul_(2), z",
        f"{X}, {X}",
        "",
    ),
    "views": (
        "",
        "return x.t(), x[:, ::2], x.as_strided((3, 2), (1, 3)), x.unsqueeze(0).movedim(0, 2), y.real",
        f"{X}, {X}",
        "",
    ),
    "random": (
        "",
        "return torch.rand_like(x), torch.nn.functional.dropout(y, 0.5), torch.bernoulli(y.sigmoid()), torch.randn(3)",
        f"{X}, {X}",
        "",
    ),
    "complex": (
        "",
        "z = torch.complex(x, y)\nreturn z.abs(), z.conj() * z, torch.view_as_real(z), torch.fft.fft(x)",
        f"{X}, {X}",
        "",
    ),
    "autograd function": (SCALE, "a, b = Scale.apply(x, 3.0)\nreturn a * b + y", f"{TRAINED}, {X}", LOSS),
    "custom ops": (
        OPS,
        "a, b = both(twice(x))\nout = torch.empty_like(y)\nfill(a, out)\nreturn out + b",
        f"{X}, {X}",
        "",
    ),
    "network": (NET, "return net(x).softmax(1)", "torch.randn(2, 3, 8, 8), None", LOSS),
    "attention": (
        "",
        "q = torch.nn.functional.layer_norm(x, (8,))\nz = torch.nn.functional.scaled_dot_product_attention(q, x, x)\n"
        "return torch.nn.functional.gelu(torch.nn.functional.linear(z, y))",
        "torch.randn(1, 2, 4, 8), torch.randn(5, 8)",
        "",
    ),
    "embedding": (
        "",
        "z = torch.nn.functional.embedding(y, x)\nloss = torch.nn.functional.cross_entropy(z, y)\n"
        "return loss, torch.nn.functional.one_hot(y, 5)",
        "torch.randn(5, 4), torch.tensor([1, 3])",
        "",
    ),
    "index": (
        "",
        "i = y.argsort(1)\nreturn x.gather(1, i), x.scatter(1, i, y), x.where(x > 0, y), x.cumsum(0)",
        f"{X}, {X}",
        "",
    ),
    "branches": ("", "return torch.cond(x.sum() > 0, lambda u: u.sin(), lambda u: u + 1, (y,))", f"{X}, {X}", ""),
    "products": (
        "",
        "return torch.bmm(x, y), torch.einsum('bij,bjk->bk', x, y), torch.addmm(x[0], x[0], y[0])",
        "torch.randn(2, 4, 4), torch.randn(2, 4, 4)",
        "",
    ),
    "dtypes": (
        "",
        "with torch.autocast('cpu', torch.bfloat16):\n    z = x @ y.T\nreturn z, z.float() + x.half().sum()",
        f"{X}, {X}",
        "",
    ),
    "training": (
        "",
        "return torch.nn.functional.dropout((x @ y.T).tanh(), 0.5) * x.norm()",
        f"{TRAINED}, {TRAINED}",
        LOSS,
    ),
    "in-place training": ("", "z = x * 3\nz[0] = y[0]\nz.mul_(2)\nreturn z.sum(0)", f"{TRAINED}, {X}", LOSS),
    "structures": (
        "",
        "return {'a': x['k'] + y[0], 'b': [torch.stack(y), torch.cat((y[0], y[1]), 1)]}",
        f"{{'k': {X}}}, ({X}, {X})",
        "",
    ),
    "linear algebra": (
        "",
        "return torch.linalg.qr(x), torch.linalg.svdvals(y), x.norm(dim=0), torch.linalg.vector_norm(y)",
        f"{X}, {X}",
        "",
    ),
}
DYNAMIC = ("operators", "methods", "products", "training")
EACH = 4


def text_of(head: str, body: str, arguments: str, loss: str) -> str:
    lines = "\n    ".join(body.split("\n"))
    return f"{head}def f(x, y):\n    {lines}\ndef program():\n    return f, ({arguments}){loss}\n"


def write(folder: Path) -> None:
    """Compile each program, and write the repros of those of its violations whose rule and node were seen least."""
    from tests.harness.repro_bench import Bench

    seen: Counter[str] = Counter()
    cases = [(name, False) for name in PROGRAMS] + [(name, True) for name in DYNAMIC]
    for number, (name, dynamic) in enumerate(cases):
        place = folder / str(number)
        place.mkdir(parents=True)
        text = text_of(*PROGRAMS[name]).replace("violating::", f"violating{number}::")
        bench = Bench(place, text, RULES, strict=False, dynamic=dynamic or None)
        assert bench.ended.failure is None, (name, bench.ended.failure)
        left = list(bench.jobs.last.violations)
        for _ in range(EACH):
            left = [each for each in left if not seen[f"{each.rule} {each.node.name}"]]
            if not left:
                break
            chosen = min(left, key=lambda each: (seen[each.rule], seen[each.node.name], seen[each.node.graph.stage]))
            seen.update((chosen.rule, chosen.node.name, chosen.node.graph.stage, f"{chosen.rule} {chosen.node.name}"))
            graph = bench.jobs.last.frames[chosen.node.graph.frame].graphs[chosen.node.graph]
            told = {"program": name, "rule": chosen.rule, "stage": graph.id.stage, "node": chosen.node.name}
            try:
                script = bench.script(graph, graph.by_name.get(chosen.node.name) or graph.nodes[-1], chosen.rule)
            except Exception as error:
                script = None
                told["refused"] = f"{type(error).__name__}: {error}"
            print(json.dumps({**told, "script": str(script or "")}), flush=True)


def run(scripts: list[str]) -> None:
    """Run each, as `python FILE` does, and print how it ended."""
    import torch._dynamo
    import torch._functorch.aot_autograd
    import torch._inductor.compile_fx  # noqa: F401

    import idbg  # noqa: F401

    for script in scripts:
        begun, told = os.pipe()
        if not (child := os.fork()):
            out = io.StringIO()
            status = 99
            signal.alarm(60)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                try:
                    sys.argv = [script]
                    runpy.run_path(script, run_name="__main__")
                    status = 0
                except SystemExit as end:
                    status = int(end.code or 0) if isinstance(end.code, int | None) else 98
                except BaseException as error:
                    print(f"{type(error).__name__}: {error}")
            os.write(told, out.getvalue()[-1500:].encode())
            os._exit(status)
        os.close(told)
        with os.fdopen(begun) as pipe:
            printed = pipe.read()
        _, ended = os.waitpid(child, 0)
        print(
            json.dumps({"script": script, "status": os.waitstatus_to_exitcode(ended), "printed": printed}), flush=True
        )


if __name__ == "__main__":
    if sys.argv[2:] == ["run"]:
        run(sys.stdin.read().split())
    else:
        write(Path(sys.argv[1]))
