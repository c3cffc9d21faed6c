"""Records of cache lookups, CUDA graphs and autotuning."""

from typing import Literal

import msgspec

from idbg.schema.graphs import Part

CacheName = Literal["fx_graph", "aot_autograd", "autotune", "triton", "kernel"]
"""Inductor's of graphs, AOTAutograd's, that of autotuning, Triton's, and that of C++ kernels (by their source)."""


class KeyPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of what a cache's key is made of, by torch's name of it: its hash, and its value where that is short."""

    name: str
    hash: str
    value: str = ""


class Differs(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a key that is not as it was, in words ("the shape of argument 1"), and what it is and was where torch
    says so briefly.
    """

    part: str
    now: str = ""
    before: str = ""


class CacheAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a cache answered. `reason`: why it was bypassed, is off, or did not have it. `what`: of which kernel or op,
    where there are several. `differs`: on a miss, those parts of the key that are not as in the nearest key that was
    seen before (of `nearest`: when, and which frame, in words); both empty where none was near, and `differs` alone
    where that very key was seen. `saved`: seconds that a hit saved, as torch says.
    """

    cache: CacheName
    outcome: Literal["hit", "miss", "bypass", "off"]
    part: Part = ""
    key: str = ""
    reason: str = ""
    what: str = ""
    differs: tuple[Differs, ...] = ()
    nearest: str = ""
    saved: float | None = None


class CudaGraph(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether calls of a compiled graph became a CUDA graph. "ready": it will be recorded at its second call, as torch
    warms up first; "split": `nodes` (of the post-grad graph) stay outside of it, the rest is recorded.

    `reason`: torch's own, why it was skipped, split or recorded again, with the user's line that caused it; `times`:
    how often it was recorded, or reported.
    """

    outcome: Literal["ready", "captured", "rerecorded", "split", "skipped"]
    part: Part = ""
    reason: str = ""
    file: str = ""
    line: int = 0
    nodes: tuple[str, ...] = ()
    times: int = 1


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One candidate, and how long a call of it took; None where it could not be measured (`error` says why)."""

    name: str
    seconds: float | None = None
    about: str = ""
    error: str = ""


class Autotuned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured to choose a kernel for an op ("mm"), or a configuration of a kernel; the fastest first.
    `cached`: it was not measured now, but found. `nodes` are of the post-grad graph. `chosen`: the fastest; a template
    is still held against what fusing it saves. `seconds`: that measuring took; `dropped`: choices beyond those kept.
    """

    op: str
    choices: tuple[Choice, ...]
    part: Part = ""
    chosen: str = ""
    kernel: str = ""
    nodes: tuple[str, ...] = ()
    inputs: str = ""
    seconds: float | None = None
    cached: bool = False
    dropped: int = 0
