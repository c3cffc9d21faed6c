"""What does a repro's script say? Plain Python that a stranger can read, run and cut down further."""

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined


@dataclass(frozen=True)
class Input:
    """One argument: a stored tensor with its shape, stride and device, or, with `literal`, a Python value.

    With `is_weight` it is passed as a Parameter, so that rules about weights know it for one.
    """

    name: str
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    device: str = ""
    literal: str = ""
    requires_grad: bool = False
    is_weight: bool = False


_TEMPLATE = '''\
"""Repro, written by idbg. {{ title }}
{% if source %}
From {{ source }}
{%- endif %}
Written with {{ versions }}. Run it: python repro.py
It exits 1 and prints REPRODUCED if the failure is still there, 0 if it is gone.
"""

import builtins  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import sys
import traceback
from math import inf, nan  # noqa: F401
from pathlib import Path

import idbg
import torch
from safetensors.torch import load_file
from torch import device  # noqa: F401

HERE = Path(__file__).resolve().parent


def program({{ arguments | map(attribute="name") | join(", ") }}):
{%- for statement in statements %}
    {{ statement }}
{%- endfor %}
    return {{ result }}


{% if arguments | selectattr("is_weight") | list -%}
def weight(tensor):
    return torch.nn.Parameter(tensor, requires_grad=False)


{% endif -%}
def inputs():
    """Values: {{ values }}."""
    saved = load_file(HERE / "tensors.safetensors")
    return (
{%- for argument in arguments %}
{%- if argument.literal %}
        {{ argument.literal }},  # {{ argument.name }}
{%- else %}
        {% if argument.is_weight %}weight({% endif %}saved["{{ argument.name }}"]
{%- if argument.device != "cpu" %}.to("{{ argument.device }}"){% endif -%}
        .as_strided({{ argument.shape }}, {{ argument.stride }})
{%- if argument.requires_grad %}.requires_grad_(){% endif %}{% if argument.is_weight %}){% endif %},
{%- endif %}
{%- endfor %}
    )


def main():
{%- if rule %}
    backend = idbg.backend("mock", strict=False, accelerator=HERE / "rules.toml")
    try:
        torch.compile(program, backend=backend)(*inputs())
    except Exception:
        traceback.print_exc()  # the rules were checked before it ran
    found = [violation for violation in backend.violations if violation.rule == {{ rule | pprint }}]
    for violation in found:
        print(f"REPRODUCED {violation}")
    return 1 if found else 0
{%- else %}
    backend = idbg.backend({{ backend | pprint }}, strict={{ strict }}, accelerator=HERE / "rules.toml")
    try:
        torch.compile(program, backend=backend)(*inputs())
    except Exception as error:
        chain = [error]
        while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(inner)
        traceback.print_exc()
        if {{ error | pprint }} in [type(link).__name__ for link in chain]:
            print("REPRODUCED", {{ error | pprint }})
            return 1
        return 2
    return 0
{%- endif %}


if __name__ == "__main__":
    sys.exit(main())
'''

_environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def render(
    *,
    title: str,
    source: str,
    versions: str,
    values: str,
    arguments: Sequence[Input],
    statements: Sequence[str],
    result: str,
    rule: str = "",
    error: str = "",
    backend: str = "",
    strict: bool = False,
) -> str:
    """The script's text: of a violation of `rule`, or of a compile that fails with the exception type `error`."""
    return _environment.from_string(_TEMPLATE).render(
        title=_quotable(title),
        source=_quotable(source),
        versions=versions,
        values=_quotable(values),
        arguments=arguments,
        statements=statements,
        result=result,
        rule=rule,
        error=error,
        backend=backend,
        strict=strict,
    )


def _quotable(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''")
