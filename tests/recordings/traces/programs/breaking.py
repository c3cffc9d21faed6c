"""Functions whose graphs break, that are compiled again, and of which one fails."""

import torch


@torch.compile
def prints(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    print("between two graphs")
    return torch.cos(y)


@torch.compile
def scaled(x: torch.Tensor, by: int) -> torch.Tensor:
    return x * by


@torch.compile
def branches(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    return x - 1


@torch.compile(fullgraph=True)
def fails(x: torch.Tensor) -> torch.Tensor:
    print("a break is an error here")
    return x.relu()


def main() -> None:
    x = torch.ones(4, 4)
    prints(x)
    for by in (2, 3, 4):
        scaled(x, by)
    scaled(x.double(), 2)
    branches(x)
    try:
        fails(x)
    except Exception as error:  # whatever torch raises: it is what this records
        print(type(error).__name__)


if __name__ == "__main__":
    main()
