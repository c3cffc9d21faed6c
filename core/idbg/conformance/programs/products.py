"""Matrix products and convolutions"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

QUICK = ("linear", "convolution", "attention")


def linear():
    """Two linear layers with a ReLU."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 10)).eval(), (torch.randn(8, 40),)


def batched_product():
    """bmm, matmul with broadcasting, addmm, and a product of a transposed matrix."""

    def model(a: Tensor, b: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        return torch.bmm(a, b), a @ b[0], torch.addmm(bias, a[0], b[0], beta=0.5), a.mT @ a

    torch.manual_seed(0)
    return model, (torch.randn(3, 7, 12), torch.randn(3, 12, 5), torch.randn(7, 5))


def einsum():
    """einsum with a contraction over two dims, and an outer product."""

    def model(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return torch.einsum("bhid,bhjd->bhij", a, b), torch.einsum("i,j->ij", a[0, 0, 0], b[0, 0, 0])

    torch.manual_seed(0)
    return model, (torch.randn(2, 3, 5, 8), torch.randn(2, 3, 6, 8))


def convolution():
    """Two convolutions: with stride and padding, and depthwise with dilation."""
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, dilation=2, groups=8)
    return nn.Sequential(*layers).eval(), (torch.randn(2, 3, 17, 17),)


def transposed_convolution():
    """A transposed convolution with output padding, and one of one dim."""

    def model(x: Tensor, weight: Tensor, line: Tensor) -> tuple[Tensor, Tensor]:
        image = F.conv_transpose2d(x, weight, stride=2, padding=1, output_padding=1)
        return image, F.conv1d(x[:, :, 0], line)

    torch.manual_seed(0)
    return model, (torch.randn(2, 4, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(5, 4, 3))


def pooling():
    """Max, average and adaptive pooling."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, ceil_mode=True), F.adaptive_avg_pool2d(x, (3, 2))

    torch.manual_seed(0)
    return model, (torch.randn(2, 3, 13, 13),)


def attention():
    """Scaled dot product attention: causal, and with a mask."""

    def model(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return causal, F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    torch.manual_seed(0)
    mask = torch.rand(2, 1, 10, 10) > 0.3
    mask[..., 0] = True  # a row that sees nothing is NaN
    return model, (*(torch.randn(2, 4, 10, 16) for _ in range(3)), mask)


def resizing():
    """Interpolation: nearest and bilinear, both ways of the corners."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        nearest = F.interpolate(x, scale_factor=2.0, mode="nearest")
        sizes = [F.interpolate(x, (9, 5), mode="bilinear", align_corners=corners) for corners in (False, True)]
        return nearest, *sizes

    torch.manual_seed(0)
    return model, (torch.randn(1, 2, 6, 7),)
