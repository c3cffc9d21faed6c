"""Read torch's flight recorder: the last collectives of this process, with the Python lines that began them.

ProcessGroupGloo and ProcessGroupNCCL each have one; TORCH_FR_BUFFER_SIZE is the number of entries, 0 is off. Then the
groups still count what they began.
"""

import contextlib
import io
import pickle
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SHORT = {
    "Float": "f32",
    "Double": "f64",
    "Half": "f16",
    "BFloat16": "bf16",
    "Long": "i64",
    "Int": "i32",
    "Short": "i16",
    "Char": "i8",
    "Byte": "u8",
    "Bool": "b8",
}
_NATIVE = "_dump_fr_trace"  # gloo's, and that of backends without one of their own
_DUMPS = (_NATIVE, "_dump_nccl_trace")
_PEER = re.compile(r"\d+\s*(?:->|<-)\s*(\d+)")


@dataclass(frozen=True)
class Entry:
    """One collective. `id` counts those of its `recorder`; `frames` are innermost first: file, line, function.

    `ended`: it completed, or nobody waits for it any more; gloo does not tell these apart. `timeout` is in seconds.
    """

    recorder: str
    id: int
    group: str
    about: str
    number: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    began: float
    ended: bool
    timeout: float
    peer_to_peer: bool
    peer: int | None
    frames: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Counted:
    """How many collectives a process group began; gloo's sends and receives are among them."""

    group: str
    about: str
    number: int


@dataclass(frozen=True)
class Recorded:
    """What the recorders have now: entries in the order in which they began, and the ranks of each process group.
    `counted`: the groups that began something, where the recorders have nothing.
    """

    entries: list[Entry] = field(default_factory=list)
    ranks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    counted: list[Counted] = field(default_factory=list)


class _Plain(pickle.Unpickler):
    """Reads what torch wrote just now, in this process, with its stacks, which the JSON lacks: plain values alone."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def read() -> Recorded:
    """Everything that the recorders of this process have; nothing where torch.distributed is not in use."""
    found = Recorded()
    recorders = sys.modules.get("torch._C._distributed_c10d")
    groups = sys.modules.get("torch.distributed.distributed_c10d")
    if recorders is None or groups is None:
        return found
    for group, ranks in list(groups._world.pg_group_ranks.items()):
        found.ranks[groups._world.pg_names.get(group, "")] = tuple(ranks)
    for name in _DUMPS:
        dump = getattr(recorders, name, None)
        if dump is None:
            continue
        trace = _Plain(io.BytesIO(dump(True, True, False))).load()
        found.entries.extend(_entry(name, each) for each in trace.get("entries", ()))
    found.entries.sort(key=lambda each: each.began)
    if not found.entries:
        found.counted.extend(_counted(groups._world.pg_names))
    return found


def _counted(names: dict[Any, str]) -> Iterator[Counted]:
    for group, name in list(names.items()):
        with contextlib.suppress(RuntimeError):  # a backend that counts nothing
            if number := int(group._get_sequence_number_for_group()):
                yield Counted(name, str(group.group_desc), number)


def _entry(recorder: str, raw: dict[str, Any]) -> Entry:
    group, about = (*raw["process_group"], "")[:2]
    name = str(raw["profiling_name"]).partition(":")[2] or str(raw["profiling_name"])
    peer = _PEER.search(name)
    is_p2p = bool(raw.get("is_p2p"))
    return Entry(
        recorder=recorder,
        id=int(raw["record_id"]),
        group=str(group),
        about=str(about),
        number=int(raw["p2p_seq_id"] if is_p2p else raw["collective_seq_id"]),
        op=name.lstrip("_"),
        inputs=_tensors(raw, "input"),
        outputs=_tensors(raw, "output"),
        began=int(raw["time_created_ns"]) / 1e9,
        ended=raw.get("state") == "completed" or (recorder == _NATIVE and bool(raw.get("retired"))),
        timeout=int(raw.get("timeout_ms") or 0) / 1e3,
        peer_to_peer=is_p2p,
        peer=int(peer[1]) if peer else None,
        frames=tuple((str(each["filename"]), int(each["line"]), str(each["name"])) for each in raw.get("frames", ())),
    )


def _tensors(raw: dict[str, Any], side: str) -> tuple[str, ...]:
    sizes, dtypes = raw.get(f"{side}_sizes", ()), raw.get(f"{side}_dtypes", ())
    return tuple(
        f"{_SHORT.get(dtype, dtype)}[{', '.join(map(str, size))}]" for size, dtype in zip(sizes, dtypes, strict=False)
    )
