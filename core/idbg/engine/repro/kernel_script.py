"""What does the script say that calls one kernel alone, and holds it against its nodes?

It runs without us: the kernel's own definition and call, as the wrapper has them, the nodes as plain ops, and the
values in tensors.safetensors beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined


@dataclass(frozen=True)
class Stored:
    """One tensor of the launch or of its nodes: a place of what is stored under `key`, which others may share.

    Without a `key` the launch only writes it: its memory is allocated, and filled with what nobody would take for a
    value.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    key: str = ""
    offset: int = 0
    kept_as: str = ""

    @property
    def text(self) -> str:
        """The tensor as Python."""
        if not self.key:
            return f'blank({self.shape}, {self.stride}, {self.dtype}, "{self.device}", filled)'
        view = f".view({self.dtype})" if self.kept_as != self.dtype else ""
        return f'saved["{self.key}"]{view}.as_strided({self.shape}, {self.stride}, {self.offset})'


@dataclass(frozen=True)
class Checked:
    """One buffer that the launch writes: what names it after the call, and the node that it holds. `rmse` and
    `maximum` are allowed over `scale`, the RMS of the node in float64.
    """

    name: str
    node: str
    scale: float
    rmse: float
    maximum: float


@dataclass(frozen=True)
class KernelScript:
    """All that a script of one launch says. `arguments`: (name in the call, Python); `nodes`: the lines of the nodes,
    of these `parameters`, each with where its value is; `returned` by them: Python.
    """

    title: str
    source: str
    versions: str
    around: Sequence[str]
    definition: str
    call: str
    assigned: str
    members: Sequence[str]
    stored: Sequence[Stored]
    plain: Sequence[tuple[str, str]]
    parameters: Sequence[tuple[str, str]]
    nodes: Sequence[str]
    returned: Sequence[str]
    checked: Sequence[Checked]
    devices: Sequence[str]
    imports: Sequence[str] = ()


_TEXT = '''\
"""{{ title }}
{% if source %}
From {{ source }}
{%- endif %}
Written by {{ script.versions }}. Run it: python repro.py
The kernel is called alone, on what it was called with in the program, and held against its nodes in float64 on the CPU.
It exits 1 and prints what is wrong if the kernel is wrong, 0 if it is not.
"""

import math
import operator  # noqa: F401
import sys
from pathlib import Path

import torch
{%- for name in script.imports %}
import {{ name }}  # noqa: F401
{%- endfor %}
from safetensors.torch import load_file

# what Inductor's wrapper has around the call
{%- for line in script.around %}
{{ line }}
{%- endfor %}

HERE = Path(__file__).resolve().parent
CALLS = 4
{% if script.definition %}
{{ script.definition }}
async_compile.wait(globals())
{% endif %}

{%- if where %}
DEVICES = {{ where }}
{% endif %}
def memory():
    """What was there as the kernel was called, by the first of the names that share it."""
    saved = load_file(HERE / "tensors.safetensors")
    where = {% if where %}DEVICES{% else %}{}{% endif %}
    return {name: value.to(where.get(name, "cpu"), copy=True) for name, value in saved.items()}


def blank(shape, stride, dtype, device, filled):
    """What the kernel only writes: what is there before must not matter."""
    out = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        return out.fill_(math.nan if filled else 0)
    return out.fill_(1 if filled else 0)


def launch(saved, filled):
    """The kernel alone: what it wrote, by the wrapper's names."""
{%- for one in script.stored %}
    {{ one.name }} = {{ one.text }}
{%- endfor %}
{%- for name, value in script.plain %}
    {{ name }} = {{ value }}
{%- endfor %}
    {% if script.assigned %}{{ script.assigned }} = {% endif %}{{ script.call }}
{%- for member in script.members %}
    {{ member }}
{%- endfor %}
{%- for device in script.devices %}
    torch.{{ device.partition(":")[0] }}.synchronize()
{%- endfor %}
    return ({% for one in script.checked %}{{ one.name }}, {% endfor %})


def nodes({{ script.parameters | map("first") | join(", ") }}{% if script.parameters %}, {% endif %}floating, where):
    """Its post-grad nodes as plain ops; `floating` gives the dtype to compute in for one that the graph names."""
{%- for line in script.nodes %}
    {{ line }}
{%- endfor %}
    return ({% for one in script.returned %}{{ one }}, {% endfor %})


{% if "laid_out" in script.returned | join %}
def laid_out(value, shape, stride):
    """The value as the buffer lies in memory of which the kernel writes a part."""
    return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device).copy_(value)

{% endif %}
def values(saved):
    """What the nodes are computed from."""
    return ({% for _, text in script.parameters %}{{ text }}, {% endfor %})


def in_float64(value):
    if not isinstance(value, torch.Tensor):
        return value
    return value.cpu().to(floating64(value.dtype), copy=True)


def floating64(dtype):
    return torch.float64 if dtype.is_floating_point else torch.complex128 if dtype.is_complex else dtype


# per buffer: the node that it holds, the RMS of its values, and what error is allowed over that: RMSE, largest
ALLOWED = {
{%- for one in script.checked %}
    "{{ one.name }}": ("{{ one.node }}", {{ one.scale }}, {{ one.rmse }}, {{ one.maximum }}),
{%- endfor %}
}


def error(value, exact, eager, scale):
    """RMSE and largest error over the scale; of integers the root of the share that neither float64 nor eager gives."""
    value, eager = value.detach().cpu().reshape(exact.shape), eager.detach().cpu().reshape(exact.shape)
    if not exact.numel():
        return 0.0, 0.0
    if not (exact.dtype.is_floating_point or exact.dtype.is_complex):
        return math.sqrt(((value != exact) & (eager == exact)).double().mean().item()), 0.0
    value = value.to(exact.dtype)
    same = (value == exact) | (value.isnan() & exact.isnan())
    off = (value - exact).abs().masked_fill(same, 0).nan_to_num(math.inf, math.inf) / (scale or 1)
    return off.square().mean().sqrt().item(), off.max().item()


def main():
    with torch.no_grad():
        exact = nodes(*map(in_float64, values(memory())), floating64, "cpu")
        eager = nodes(*values(memory()), lambda dtype: dtype, "{{ device }}")
        given = [launch(memory(), filled=bool(number % 2)) for number in range(CALLS)]
    wrong = False
    for at, (name, (node, scale, rmse, largest)) in enumerate(ALLOWED.items()):
        own = error(eager[at], exact[at], eager[at], scale)[0]
        for number, call in enumerate(given):
            found = error(call[at], exact[at], eager[at], scale)
            bad = not (found[0] <= rmse and found[1] <= largest)
            wrong = wrong or bad
            if bad or number == 0:
                print(
                    f"{'WRONG' if bad else 'right'}: {name} ({node}), call {number + 1}: relative error {found[0]:.3g} "
                    f"(allowed {rmse:.3g}, eager's {own:.3g}), largest {found[1]:.3g} (allowed {largest:.3g})"
                )
        if not all(torch.equal(bits(call[at]), bits(given[0][at])) for call in given):
            print(f"{name} is not the same in each call; every second one finds other values in what it only writes")
    return 1 if wrong else 0


def bits(value):
    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


if __name__ == "__main__":
    sys.exit(main())
'''

_environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def of_a_kernel(script: KernelScript, where: Mapping[str, str]) -> str:
    """The script's text; `where`: the devices of what is stored, where that is not the CPU."""
    title, source = (text.replace("\\", "/").replace('"""', "'''") for text in (script.title, script.source))
    device = script.devices[0] if script.devices else "cpu"
    return _environment.from_string(_TEXT).render(
        script=script, title=title, source=source, where=dict(where), device=device
    )
