"""A training step of a small block with attention, on CUDA, and a Triton kernel of its own."""

import torch
import triton  # type: ignore[import-untyped]
import triton.language as tl  # type: ignore[import-untyped]


@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def gate_kernel(x, g, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    w = tl.load(g + at, at < n)
    tl.store(out + at, v * tl.sigmoid(w.to(tl.float32)).to(v.dtype), at < n)


class Block(torch.nn.Module):
    def __init__(self, d=256, h=8):
        super().__init__()
        self.qkv, self.out, self.h = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d), h
        self.norm = torch.nn.LayerNorm(d)
        self.up, self.down = torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


torch.manual_seed(0)
model = Block().cuda()
opt = torch.optim.AdamW(model.parameters())
step = torch.compile(lambda x: model(x).square().mean())
for _ in range(3):
    loss = step(torch.randn(8, 128, 256, device="cuda"))
    loss.backward()
    opt.step()
    opt.zero_grad()


@torch.compile
def gated(x, g):
    out = torch.empty_like(x)
    gate_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, g, out, x.numel())
    return out + 1


print("loss", float(loss), float(gated(torch.randn(4096, device="cuda"), torch.randn(4096, device="cuda")).sum()))
