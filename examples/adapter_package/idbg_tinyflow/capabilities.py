"""What can Tinyflow do? No torch here: the screen reads this before torch is imported anywhere."""

from idbg import Capabilities
from idbg.constraints.alignment import Alignment

CAPABILITIES = Capabilities(
    dtypes=("float32", "bfloat16"),
    ops=("addmm", "linear", "mm", "t", "add", "relu"),
    other_ops="fallback",
    max_bytes=64 << 20,
    alignment=4,
    aligned_dims="last",
    max_rank=4,
    dynamic_shapes=False,
    rules=(Alignment(name="full-rows", multiple=16, dims="last", severity="slow"),),
)

TINYFLOW = CAPABILITIES.accelerator("tinyflow", "an example: float32 and bfloat16, rows of 4")
