"""A program whose third kernel is wrong: its C++ source is edited on the way to the compiler."""

import torch
from torch._inductor.async_compile import AsyncCompile

compile_cpp = AsyncCompile.cpp_pybinding


def edited(self: AsyncCompile, argtypes: list[str], source_code: str, **kwargs: object) -> object:
    return compile_cpp(self, argtypes, source_code.replace("1.0372", "1.0472"), **kwargs)


AsyncCompile.cpp_pybinding = edited  # type: ignore[method-assign]


def model(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
    first = ((x @ w) * 1.25).softmax(-1)
    second = ((first @ w) * 1.0372 + first).softmax(-1)
    third = ((second @ w) * 1.5).softmax(-1)
    return {"early": first, "late": third}


def program() -> object:
    torch.manual_seed(0)
    return model, (torch.randn(4, 48, 48), torch.randn(48, 48))
