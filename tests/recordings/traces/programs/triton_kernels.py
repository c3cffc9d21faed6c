"""A Triton kernel of the program's own, and those of a compile, logged by tritonparse: needs a GPU."""

# mypy: ignore-errors

import tritonparse.structured_logging as log

log.init("/tmp/tp/raw", enable_trace_launch=True, enable_more_tensor_information=False)

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def scaled_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) * 2 + tl.load(y + at, mask=mask), mask=mask)


x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
out = torch.empty_like(x)
for _ in range(2):
    scaled_add[(triton.cdiv(1000, 256),)](x, y, out, 1000, BLOCK=256)
function = torch.compile(lambda a, b: torch.softmax(a @ b, -1).relu() + 1)
function(torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda"))
torch.cuda.synchronize()
