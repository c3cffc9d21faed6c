"""A guard failed, and a function was compiled again: what can be done about it?"""

import re
from collections.abc import Iterator

from idbg.analysis.decisions.recompiles import shown
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.schema.decisions.dynamo import FailedGuard

_STACKED = re.compile(r"___stack\d+")
_NUMBER = re.compile(r"^-?\d+$")
_REAL = re.compile(r"^-?(\d+\.\d*|\d*\.\d+|\d+)(e[+-]?\d+)?$")
_SET = "torch._dynamo.config."
_DTYPES = {
    "Float": "torch.float32",
    "Double": "torch.float64",
    "Half": "torch.float16",
    "BFloat16": "torch.bfloat16",
    "Int": "torch.int32",
    "Long": "torch.int64",
    "Bool": "torch.bool",
}


def suggestions(failed: FailedGuard, *, dynamic: bool | None = None, inside: bool = False) -> list[Suggestion]:
    """What would keep this guard from failing, the best first; `dynamic` is what the program was compiled with.
    `inside`: it is of what goes on after a break, whose values are none that the program hands over.
    """
    match failed.kind:
        case "size":
            return list(_of_size(failed, dynamic, inside))
        case "value":
            return list(_of_value(failed, dynamic))
        case "tensor":
            return list(_of_tensor(failed))
        case _:
            return list(_of_others(failed))


def _of_size(failed: FailedGuard, dynamic: bool | None, inside: bool) -> Iterator[Suggestion]:
    name, (what, _, dim) = _user_name(failed.source), failed.what.partition(" ")
    if what == "rank":
        yield Suggestion(f"give {name} the same number of dimensions in each call", f"{name} = {name}.reshape(...)")
        return
    if what == "stride":
        yield Suggestion(f"lay {name} out alike in each call", f"{name} = {name}.contiguous()")
    elif "0" in (failed.expected, failed.actual) or "1" in (failed.expected, failed.actual):
        yield Suggestion(
            f"sizes 0 and 1 are always compiled on their own: pad {name}, or allow all sizes",
            f"torch._dynamo.decorators.mark_unbacked({name}, {dim})",
        )
    elif "<" in failed.expected or "Mod" in failed.expected or "%" in failed.expected:
        where = f" at line {failed.line}" if failed.line else ""
        yield Suggestion(f"code{where} does otherwise for such sizes: pad {name} to one side, or take the test out")
    if dynamic is not True and _is_users(failed.source):
        yield Suggestion(
            f"say that size {dim or 0} of {name} varies: one version fits all, from the first call on",
            _dynamic(failed.source) if inside else f"torch._dynamo.mark_dynamic({name}, {dim or 0})",
            dynamic=None if dynamic is None else True,
            dynamic_sources=(failed.source,),
        )
    if dynamic is not True:
        yield Suggestion("let all sizes vary", "torch.compile(f, dynamic=True)", dynamic=True)
    if what == "size" and not inside:
        yield Suggestion(
            "if there are few sizes, and speed counts more: keep a version for each",
            f"torch._dynamo.mark_static({name}, {dim or 0})",
        )


def _of_value(failed: FailedGuard, dynamic: bool | None) -> Iterator[Suggestion]:
    name = _user_name(failed.source)
    numbers = _REAL.match(failed.expected) and _REAL.match(failed.actual or failed.expected)
    if not numbers:
        yield Suggestion(f"each value of {name} is compiled on its own: choose outside of what is compiled")
        return
    if "allow_unspec_int_on_nn_module" in failed.text:
        yield Suggestion(
            "let integers of modules vary",
            f"{_SET}allow_unspec_int_on_nn_module = True",
            settings={"dynamo.allow_unspec_int_on_nn_module": True},
        )
    elif not _NUMBER.match(failed.expected):
        yield Suggestion(
            f"nothing, if it was once: of floats torch compiles in the first, and lets {name} vary after it"
        )
    elif _is_users(failed.source) and dynamic is not True:
        yield Suggestion(
            f"say that {name} varies: one version fits all, from the first call on",
            _dynamic(failed.source),
            dynamic=None if dynamic is None else True,
            dynamic_sources=(failed.source,),
        )
    yield Suggestion(
        f"make {name} a tensor: its value is then no part of what is compiled", f"{name} = torch.tensor({name})"
    )
    yield Suggestion(f"hoist it: compute what needs {name} outside, and pass the result")


def _of_tensor(failed: FailedGuard) -> Iterator[Suggestion]:
    name = _user_name(failed.source)
    what = failed.what.partition(" ")[0]
    if what == "dtype":
        dtype = _DTYPES.get(failed.expected, "dtype")
        yield Suggestion(f"cast {name} once, before the call", f"{name} = {name}.to({dtype})")
    elif what == "requires_grad":
        yield Suggestion(
            f"call it always with {name} that needs gradients, or never",
            f"{name} = {name}.detach()" if failed.expected == "False" else f"{name}.requires_grad_()",
        )
    elif what == "stride":
        yield Suggestion(f"lay {name} out alike in each call", f"{name} = {name}.contiguous()")
    elif what == "device":
        yield Suggestion(f"have {name} on the same device in each call", f"{name} = {name}.to(device)")
    else:
        yield Suggestion(
            f"call it always in the same mode (inference_mode, autocast, vmap), and with the same kind of {name}"
        )


def _of_others(failed: FailedGuard) -> Iterator[Suggestion]:
    name = _user_name(failed.source)
    match failed.kind:
        case "length":
            yield Suggestion(
                f"keep {name} as long as it is: change it outside of what is compiled, or make it a tensor"
            )
        case "type":
            yield Suggestion(f"pass {name} always as a {failed.expected}")
        case "identity":
            yield Suggestion(
                f"make {name.removesuffix('.__code__')} once, not anew for each call: each is compiled on its own"
            )
        case "key":
            yield Suggestion(f"give {name} the same keys in each call, or choose outside of what is compiled")
        case "state" if "grad_mode" in failed.source:
            yield Suggestion(
                "call it always with gradients or always without: each is a version of its own",
                "with torch.no_grad(): ...",
            )
        case "state":
            yield Suggestion(
                f"leave torch's {failed.source} as it is between calls: each state is a version of its own"
            )
        case "alias":
            yield Suggestion("pass tensors that share no memory, or always the same", "x.clone()")
        case _:
            return


def _dynamic(source: str) -> str:
    return f'torch.compiler.config.dynamic_sources = "{source}"'


def _is_users(source: str) -> bool:
    """Whether it is something that the program gives, and not what a break left on Python's stack."""
    return bool(source) and not _STACKED.search(source)


def _user_name(source: str) -> str:
    return shown(source) if _is_users(source) else "what crosses the break"
