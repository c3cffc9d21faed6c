"""Compute fused attention ops in float64, in plain math.

Their own kernels are never called in float64, whatever they accept: flash and efficient attention raise, cuDNN's
returns uninitialized memory. Results have the op's own strides. Dropout's mask is that of the op's own kernel: it
depends on the generator's seed and offset and not on values, so attention over zeros shows it.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

import torch
from torch import Tensor

from idbg.engine.compat import comparing, fx
from idbg.engine.compat.torch_types import OpOverload, tree_map

_FUSED: Final = re.compile(
    r"_scaled_dot_product_(flash|efficient|cudnn)_attention(_for_cpu)?(_backward)?"
    r"|_scaled_dot_product_fused_attention_overrideable(_backward)?"
    r"|_(flash|efficient|cudnn)_attention_(forward|backward)"
)
_ROWS_FIRST: Final = re.compile(r"_(flash|efficient)_attention_\w+")  # these take (batch, row, head, column)
_UNSUPPORTED: Final = ("cum_seq_q", "cu_seqlens_q", "seqused_k", "seqlen_k", "alibi_slopes", "block_table")
_WINDOWS: Final = ("window_size_left", "window_size_right", "window_size")
_WIDTH: Final = 8  # flash attention takes heads of multiples of it


class NoPlainMath(RuntimeError):
    """A fused attention op whose float64 values are not known; the message says why."""


def is_fused(func: object) -> TypeGuard[OpOverload]:
    """Whether it is a fused attention op, or the backward of one."""
    return isinstance(func, OpOverload) and _FUSED.fullmatch(fx.op_name(func)) is not None


def in_plain_math(func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """The op's results, floating ones in float64, with the random numbers that the op draws. Raises NoPlainMath."""
    arguments = _named(func, args, kwargs)
    if not all(isinstance(arguments[name], Tensor) for name in ("query", "key", "value")):
        raise NoPlainMath(f"{func} of no tensors")
    if func._overloadname == "quantized" or any(map(_is_there, (arguments.get(name) for name in _UNSUPPORTED))):
        raise NoPlainMath(f"{func} of sequences of their own lengths has no float64")
    if any((arguments.get(name, -1) or -1) > 0 for name in _WINDOWS):
        raise NoPlainMath(f"{func} with a window has no float64")
    meta = func(*_as_meta(args), **_as_meta(kwargs))
    if "backward" in fx.op_name(func):
        return _laid_out(meta, _backward(func, arguments), cast("Tensor", arguments["query"]).device)
    drawn = _drawn(func, arguments) if arguments.get("dropout_p") else None
    results = _laid_out(meta, _forward(func, arguments, drawn), cast("Tensor", arguments["query"]).device)
    return results if drawn is None else _with_state(func, results, drawn.state)


def _named(func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Any]:
    declared = func._schema.arguments
    arguments = {argument.name: argument.default_value for argument in declared}
    return arguments | {one.name: value for one, value in zip(declared, args, strict=False)} | dict(kwargs)


def _as_meta(values: Any) -> Any:
    def leaf(value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        dtype = torch.bfloat16 if value.dtype.is_floating_point else value.dtype
        return torch.empty_strided(value.shape, value.stride(), dtype=dtype, device="meta")

    return tree_map(leaf, values)


@dataclass(frozen=True)
class _Attention:
    """Queries, keys and values as (batch, head, row, column), the keys and values with a head for each of the
    queries'; `scores` are before the softmax.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    groups: int
    scores: Tensor

    @staticmethod
    def of(func: OpOverload, arguments: Mapping[str, Any]) -> "_Attention":
        query, key, value = (_heads_first(func, arguments[name]) for name in ("query", "key", "value"))
        groups = query.shape[-3] // max(1, key.shape[-3])
        if groups > 1:
            key, value = (each.repeat_interleave(groups, -3) for each in (key, value))
        scale = arguments.get("scale")
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        scores = scale * (query @ key.mT)
        if (bias := _bias(arguments)) is not None:
            scores = scores.masked_fill(~bias, -math.inf) if bias.dtype == torch.bool else scores + bias
        hidden = _hidden(func, arguments, scores)
        return _Attention(
            query, key, value, scale, groups, scores if hidden is None else scores.masked_fill(hidden, -math.inf)
        )


def _bias(arguments: Mapping[str, Any]) -> Tensor | None:
    return next(
        (arguments[name] for name in ("attn_bias", "attn_mask", "bias") if _is_there(arguments.get(name))), None
    )


def _is_there(value: object) -> bool:
    """Whether it is a tensor with elements: an op may take an empty one for none."""
    return isinstance(value, Tensor) and value.numel() > 0


def _hidden(func: OpOverload, arguments: Mapping[str, Any], scores: Tensor) -> Tensor | None:
    """The mask of a causal op. Where queries and keys differ in length, most ops align their beginnings."""
    kind = arguments.get("custom_mask_type", int(bool(arguments.get("is_causal"))))
    if not kind:
        return None
    rows, columns = scores.shape[-2:]
    from_the_end = kind == 2 or fx.op_name(func).startswith("_flash_attention")
    begin = columns - rows if from_the_end else 0
    ones = torch.ones(rows, columns, dtype=torch.bool, device=scores.device)
    return ones.triu(begin + 1)


def _heads_first(func: OpOverload, value: Tensor) -> Tensor:
    return value.transpose(-2, -3) if _ROWS_FIRST.fullmatch(fx.op_name(func)) else value


_Results = Mapping[int, Tensor | None]
"""Tensors by their place among the op's results."""


def _forward(func: OpOverload, arguments: Mapping[str, Any], drawn: "_Drawn | None") -> _Results:
    one = _Attention.of(func, arguments)
    lse = one.scores.logsumexp(-1)
    weights = _weights(one.scores, lse)
    if drawn is not None:
        weights = weights * drawn.kept / (1 - arguments["dropout_p"])
    return {0: _heads_first(func, weights @ one.value), 1: lse}


def _weights(scores: Tensor, lse: Tensor) -> Tensor:
    """The softmax; zeros for a row whose keys are all masked."""
    seen = lse.isfinite()
    return torch.where(seen[..., None], (scores - lse.masked_fill(~seen, 0)[..., None]).exp(), 0.0)


def _backward(func: OpOverload, arguments: Mapping[str, Any]) -> _Results:
    """From what the forward saved: if that is wrong, so is the gradient."""
    one = _Attention.of(func, arguments)
    grad = _heads_first(func, arguments["grad_out"] if "grad_out" in arguments else arguments["grad_out_"])
    out = _heads_first(func, arguments["out"])
    batch, heads, rows = one.query.shape[:3]
    lse = arguments["logsumexp"].reshape(batch, heads, -1)[..., :rows]
    weights = _weights(one.scores, lse)
    grad_weights, dropped = grad @ one.value.mT, weights
    if p := arguments.get("dropout_p"):
        kept = _kept(func, arguments, _state_of(arguments)) / (1 - p)
        grad_weights, dropped = grad_weights * kept, weights * kept
    grad_scores = weights * (grad_weights - (grad * out).sum(-1, keepdim=True))
    grad_key, grad_value = one.scale * (grad_scores.mT @ one.query), dropped.mT @ grad
    if one.groups > 1:
        grad_key, grad_value = (_summed_by(one.groups, each) for each in (grad_key, grad_value))
    inputs = [_heads_first(func, each) for each in (one.scale * (grad_scores @ one.key), grad_key, grad_value)]
    bias = _bias(arguments)
    return dict(enumerate([*inputs, None if bias is None else grad_scores.sum_to_size(bias.shape)]))


def _summed_by(groups: int, grad: Tensor) -> Tensor:
    """Sums over the queries' heads that share a head of the keys."""
    batch, heads, *others = grad.shape
    return grad.reshape(batch, heads // groups, groups, *others).sum(2)


def _laid_out(meta: object, results: _Results, device: torch.device) -> tuple[object, ...]:
    """The results with the op's strides: padding is infinite, what is not known (a generator's state) 0."""
    return tuple(
        _as_meta_lies(like, results.get(place), device) if isinstance(like, Tensor) else like
        for place, like in enumerate(cast("tuple[object, ...]", meta))
    )


def _as_meta_lies(like: Tensor, value: Tensor | None, device: torch.device) -> Tensor:
    dtype = torch.float64 if like.dtype.is_floating_point else like.dtype
    made = torch.empty_strided(like.shape, like.stride(), dtype=dtype, device=device)
    made.zero_()
    if value is None or not made.numel():
        return made
    if made.dim() == value.dim() + 1:
        value = value[..., None]
    if made.shape != value.shape:  # a logsumexp of more rows than there are
        made.fill_(math.inf)
        made[..., : value.shape[-1]] = value
        return made
    return made.copy_(value)


# Dropout


@dataclass(frozen=True)
class _Drawn:
    """What a forward draws: the mask of kept weights, and the generator's state that the op returns."""

    kept: Tensor
    state: Mapping[str, object]


_State = tuple[int, int]  # seed and offset of a generator

_STATES: Final = ("philox_seed", "philox_offset", "rng_state", "unused")


def _state_of(arguments: Mapping[str, Any]) -> _State:
    """The generator's state among a backward's arguments."""
    first = arguments.get("philox_seed", arguments.get("rng_state"))
    second = arguments.get("philox_offset", arguments.get("unused"))
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        raise NoPlainMath("dropout's random state is not among what the backward takes")
    if first.numel() == 2:  # flash attention's holds both
        seed, offset = first.cpu().view(torch.int64).tolist()
        return seed, offset
    return int(first.reshape(-1)[0]), int(second.reshape(-1)[0])


def _drawn(func: OpOverload, arguments: Mapping[str, Any]) -> _Drawn:
    """What the op draws from the generator's current state; it advances the generator as the op does."""
    generator = _generator(cast("Tensor", arguments["query"]).device)
    begin = generator.get_state()
    probe = _Probe(func, arguments)
    results = probe.run(0)
    end = generator.get_state()
    names = [each.name for each in func._schema.returns]
    state = {name: value for name, value in zip(names, results, strict=True) if name in _STATES}
    parts = [probe.kept(results, 0)]
    for at in range(probe.width, probe.columns, probe.width):
        generator.set_state(begin)
        parts.append(probe.kept(probe.run(at), at))
    generator.set_state(end)
    return _Drawn(torch.cat(parts, dim=-1), state)


def _kept(func: OpOverload, arguments: Mapping[str, Any], state: _State) -> Tensor:
    """The weights that a forward kept which began with this generator state."""
    device = cast("Tensor", arguments["query"]).device
    with _generator_at(device, state):
        forward = getattr(torch.ops.aten, re.sub("_backward$", "", fx.op_name(func)).replace("_backward", "_forward"))
        return _drawn(cast("OpOverload", forward.default), arguments).kept


def _generator(device: torch.device) -> torch.Generator:
    if device.type != "cuda":
        raise NoPlainMath(f"attention with dropout on {device.type}: which weights it drops is not known")
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


@contextmanager
def _generator_at(device: torch.device, state: _State) -> Iterator[None]:
    """Set the device's generator to this seed and offset in this context."""
    generator = _generator(device)
    before = generator.get_state()
    try:
        generator.manual_seed(state[0])
        cast("Any", generator).set_offset(state[1])
        yield
    finally:
        generator.set_state(before)


class _Probe:
    """The forward over zeros, with columns of the unit matrix as values: a result is 0 where a weight was dropped."""

    def __init__(self, func: OpOverload, arguments: Mapping[str, Any]) -> None:
        self.func = func
        query, key, value = (_heads_first(func, arguments[name]) for name in ("query", "key", "value"))
        dtype = torch.float32 if "efficient" in fx.op_name(func) else torch.bfloat16
        self.width = -(-value.shape[-1] // _WIDTH) * _WIDTH
        self.columns = key.shape[-2]
        self.query = query.new_zeros((*query.shape[:-1], -(-query.shape[-1] // _WIDTH) * _WIDTH), dtype=dtype)
        self.key = key.new_zeros((*key.shape[:-1], self.query.shape[-1]), dtype=dtype)
        self.value = value.new_zeros((*value.shape[:-1], self.width), dtype=dtype)
        taken = {argument.name for argument in func._schema.arguments}
        self.named = {name: each for name, each in arguments.items() if name in taken}
        self.named |= {name: None for name in ("attn_bias", "attn_mask", "bias", "scale") if name in taken}
        self.named |= {name: False for name in ("return_debug_mask",) if name in taken}
        self.named |= {name: True for name in ("compute_log_sumexp",) if name in taken}
        self.named |= {"max_q": query.shape[-2], "max_k": key.shape[-2]} if "max_q" in taken else {}

    def run(self, at: int) -> tuple[object, ...]:
        self.value.zero_()
        last = min(self.columns, at + self.width)
        for column in range(at, last):
            self.value[..., column, column - at] = 1
        tensors = {"query": self.query, "key": self.key, "value": self.value}
        placed = {name: _heads_first(self.func, each) for name, each in tensors.items()}
        with comparing.no_modes():
            return cast("tuple[object, ...]", self.func(**{**self.named, **placed}))

    def kept(self, results: tuple[object, ...], at: int) -> Tensor:
        shown = _heads_first(self.func, cast("Tensor", results[0]))
        return shown[..., : min(self.width, self.columns - at)] != 0


def _with_state(func: OpOverload, results: tuple[object, ...], state: Mapping[str, object]) -> tuple[object, ...]:
    names = [each.name for each in func._schema.returns]
    return tuple(state.get(name, result) for name, result in zip(names, results, strict=True))
