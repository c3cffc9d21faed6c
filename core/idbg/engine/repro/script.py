"""What does a repro's script say? Plain Python that a stranger can read, run and cut down further."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined

MARK = "  # the node"


@dataclass(frozen=True)
class Input:
    """One argument: a stored tensor with its shape, stride and device, or, with `literal`, a Python value.

    `dtype` is given where it is stored as another one; `dynamic` are the dimensions whose size is symbolic. With
    `is_weight` it is passed as a Parameter, so that rules about weights know it for one; with `is_array` as NumPy's.
    """

    name: str
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    device: str = ""
    literal: str = ""
    dtype: str = ""
    dynamic: tuple[int, ...] = ()
    requires_grad: bool = False
    is_weight: bool = False
    is_array: bool = False

    @property
    def text(self) -> str:
        """The argument as Python."""
        if self.literal:
            return self.literal
        text = f'saved["{self.name}"]'
        text += f".view({self.dtype})" if self.dtype else ""
        text += f'.to("{self.device}")' if self.device != "cpu" else ""
        text += f".as_strided({self.shape}, {self.stride})"
        text += ".requires_grad_()" if self.requires_grad else ""
        text = f"weight({text})" if self.is_weight else text
        text = f"{text}.numpy()" if self.is_array else text
        return f"dynamic({text}, {', '.join(map(str, self.dynamic))})" if self.dynamic and not self.is_array else text


@dataclass(frozen=True)
class ScriptBody:
    """What the script computes: the function's arguments and lines, what it returns, and the packages it needs."""

    arguments: Sequence[Input]
    statements: Sequence[str]
    result: str
    values: str
    imports: Iterable[str] = ()


_PROGRAM = """\
def program({{ body.arguments | map(attribute="name") | join(", ") }}):
{%- for statement in body.statements %}
    {{ statement }}
{%- endfor %}
    return {{ body.result }}

{% if body.arguments | selectattr("is_weight") | list %}
def weight(tensor):
    return torch.nn.Parameter(tensor, requires_grad=False)

{% endif %}
{%- if body.arguments | selectattr("dynamic") | list %}
def dynamic(tensor, *dims):
    \"""These sizes may change: they are symbols to the compiler.\"""
    torch._dynamo.maybe_mark_dynamic(tensor, dims)
    return tensor

{% endif %}
def inputs():
    \"""Values: {{ values }}.\"""
{%- if body.arguments | rejectattr("literal") | list %}
    saved = load_file(HERE / "tensors.safetensors")
{%- endif %}
    return (
{%- for argument in body.arguments %}
        {{ argument.text }},{% if argument.literal %}  # {{ argument.name }}{% endif %}
{%- endfor %}
    )


"""

_IMPORTS = """\
{%- for name in imports %}
import {{ name }}  # noqa: F401
{%- endfor %}
import torch
{%- if body.arguments | rejectattr("literal") | list %}
from safetensors.torch import load_file
{%- endif %}
from torch import device, inf, nan  # noqa: F401

HERE = Path(__file__).resolve().parent
"""

_OF_A_RULE = (
    '''\
"""Repro, written by idbg. {{ title }}
{% if source %}
From {{ source }}
{%- endif %}
Written with {{ versions }}. Run it: python repro.py
It exits 1 and prints REPRODUCED if {{ subject }} still breaks the rule, 0 if not.
"""

import operator  # noqa: F401
import sys
import traceback
from pathlib import Path

import idbg'''
    + _IMPORTS
    + "\n\n"
    + _PROGRAM
    + '''\
def main():
    backend = idbg.backend("mock", strict=False, accelerator=HERE / "rules.toml")
    try:
        torch.compile(program, backend=backend)(*inputs())
    except Exception:
        traceback.print_exc()  # the rules were checked before it ran
    found = [found for found in backend.violations if found.rule == {{ rule | pprint }}{{ where }}]
    for violation in found:
        print(f"REPRODUCED {violation}")
    return 1 if found else 0
{%- if marked %}


def marked():
    """The lines of the node: another, or an argument, may break the rule as well."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("{{ mark }}")]
{%- endif %}


if __name__ == "__main__":
    sys.exit(main())
'''
)

_OF_A_COMPILE = (
    '''\
"""{{ title }}
{% for line in message %}
{{ "    " + line if line }}
{%- endfor %}
{% if source %}
From {{ source }}
{%- endif %}
{%- if note %}
{{ note }}
{%- endif %}
Written by {{ versions }}. Run it: python repro.py
It exits 1 and prints REPRODUCED if it still fails so, 0 if it does not fail, and 2 if it fails in another way.
"""

import operator  # noqa: F401
import sys
import traceback
from pathlib import Path
{% if of_idbg %}
import idbg
{%- endif %}'''
    + _IMPORTS
    + """\
ERROR, MESSAGE = {{ error | pprint }}, {{ fragment | pprint }}


"""
    + _PROGRAM
    + """\
def main():
{%- for line in settings %}
    {{ line }}
{%- endfor %}
    compiled = torch.compile(program, {{ how }})
    try:
{%- if modes %}
        with {{ modes | join(", ") }}:
            result = compiled(*inputs())
{%- else %}
        result = compiled(*inputs())
{%- endif %}
{%- if body.arguments | selectattr("requires_grad") | list %}
        outputs = [out for out in result if isinstance(out, torch.Tensor) and out.requires_grad]
        torch.autograd.backward(outputs, [torch.ones_like(out) for out in outputs])
{%- else %}
        del result
{%- endif %}
    except Exception as error:
        traceback.print_exc()
        return 1 if is_the_same(error) else 2
    return 0


def is_the_same(error):
    while error is not None:
        if type(error).__name__ == ERROR and MESSAGE in str(error):
            print("REPRODUCED", ERROR, MESSAGE)
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    sys.exit(main())
"""
)

_OF_THE_NODE = " and found.line in marked() and not backend.is_argument(found)"

_environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def of_a_rule(
    *, title: str, source: str, versions: str, body: ScriptBody, rule: str, is_input: bool, is_whole: bool
) -> str:
    """A script in which one node breaks `rule`; or its one argument, or the graph as a whole."""
    where = "" if is_whole else " and backend.is_argument(found)" if is_input else _OF_THE_NODE
    return _environment.from_string(_OF_A_RULE).render(
        title=_quotable(title),
        source=_quotable(source),
        versions=versions,
        body=body,
        imports=_imported(body),
        values=_quotable(body.values),
        rule=rule,
        where=where,
        marked=not (is_input or is_whole),
        mark=MARK,
        subject="the graph" if is_whole else "the argument" if is_input else "the node",
    )


def of_a_compile(
    *,
    title: str,
    message: Sequence[str],
    source: str,
    note: str,
    versions: str,
    body: ScriptBody,
    error: str,
    fragment: str,
    settings: Sequence[str],
    modes: Sequence[str],
    how: str,
) -> str:
    """A script whose compile fails with the exception type `error`, and a message that has `fragment` in it."""
    return _environment.from_string(_OF_A_COMPILE).render(
        title=_quotable(title),
        message=[_quotable(line) for line in message],
        source=_quotable(source),
        note=note,
        versions=versions,
        body=body,
        imports=_imported(body),
        of_idbg="idbg." in how,
        values=_quotable(body.values),
        error=error,
        fragment=fragment,
        settings=settings,
        modes=modes,
        how=how,
    )


def _imported(body: ScriptBody) -> list[str]:
    return sorted(set(body.imports) - {"torch", "operator", "sys", "traceback"})


def _quotable(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''")
