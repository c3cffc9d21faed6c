"""Explain in which parts two cache keys differ.

Torch logs the parts of an FX graph cache's key as lines, "[HASH] NAME: VALUE". A part is as it was if its hash is;
values only show how it differs.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from idbg.schema.decisions.inductor import CacheAnswer, Differs, KeyPart

MOST_VALUE = 400  # characters of a value that are kept
MOST_DIFFERS = 20  # differences that are listed of two keys
MOST_OF_ARGUMENTS = 6  # of these that are about arguments
MOST_ARGUMENTS = 500  # of a graph, whose parts are kept one by one
FOLDER = "cache_folder"
"""A part of ours: another folder is another cache, whatever the key."""

_LINE = re.compile(r"\[([0-9a-z]+)\] (\w+)(?:\[(.*?)\])?: ?", re.DOTALL)
_PLACEHOLDERS = re.compile(r"def forward\(self(?:, ([^)]*))?\)")
_FIELD = re.compile(r"(\w+)=((?:\([^()]*\)|\w[\w.]*\((?:[^()]|\([^()]*\))*\)|[^,()])*)")

_WORDS = {
    "gm": "the graph's code",
    FOLDER: "the folder that the cache is in",
    "torch_version": "torch itself: its version, or its files",
    "cache_key_tag": "torch.compiler.config.cache_key_tag",
    "cpp_runtime_thread_count": "the number of threads",
    "default_dtype": "torch's default dtype",
    "default_cuda_device_index": "which GPU is the current one",
    "deterministic_algorithms_settings": "torch.use_deterministic_algorithms",
    "cuda_matmul_settings": "the precision of matmuls on a GPU (torch.backends.cuda.matmul)",
    "provenance_tracking_level": "inductor config: trace.provenance_tracking_level",
    "var_to_hint_override": "a hint of a dynamic size",
    "custom_backend_passes": "the passes of a backend of others",
    "custom_backend_codegen_configs": "the settings of a backend of others",
    "nested_inductor_config_patches": "inductor config of a region of the graph",
    "_custom_partitioner_fn": "inductor config: custom_partitioner_fn",
}
_OF_WORDS = {
    "inductor_config": "inductor config: {}",
    "inductor_config_comms": "inductor config of communication: {}",
    "system_info": "the machine: its {}",
    "user_defined_triton_source": "the source of the user's Triton kernel {}",
    "custom_backend_codegen_configs": "the settings of the backend for {}",
    "var_to_hint_override": "the hint of size {}",
}
_ARGUMENT_WORDS = {  # of compile_fx
    "cudagraphs": "whether CUDA graphs are requested",
    "static_input_idxs": "which arguments keep their memory from call to call",
    "is_backward": "whether it is a backward",
    "is_inference": "whether gradients are requested",
    "cpp_wrapper": "inductor config: cpp_wrapper",
    "aot_mode": "whether it is compiled ahead of time",
}
_FROM = {"fx_kwargs[cudagraphs]": "inductor_config[triton.cudagraphs]"}  # what is the same fact as another part
_FOLLOWS = {  # what differs as well where this does, and need not be repeated
    "shape": ("stride", "storage_bytes", "memory_format", "storage_offset"),
    "stride": ("memory_format", "storage_bytes"),
    "dtype": ("storage_bytes",),
    "storage_offset": ("storage_bytes",),
}


@dataclass(frozen=True)
class Key:
    """A key that was seen: what it is of (`place`: file, function and part, as they stay from run to run), who had it
    (`when`, in words), and its parts by name.
    """

    key: str
    place: str
    when: str
    parts: dict[str, KeyPart]


def parts_of(lines: Iterable[str]) -> tuple[KeyPart, ...]:
    """The parts of torch's lines; of the graph's code only the arguments' names are kept as its value."""
    return tuple(part for line in lines if (part := _part(line)) is not None)


def _part(line: str) -> KeyPart | None:
    found = _LINE.match(line)
    if found is None:
        return None
    digest, name, of = found.groups()
    if of is not None and name == "example_inputs" and int(of) >= MOST_ARGUMENTS:
        return None
    value = line[found.end() :]
    if name == "gm":
        arguments = _PLACEHOLDERS.search(value)
        value = (arguments[1] or "") if arguments else ""
        return KeyPart(name, digest, value[: 40 * MOST_VALUE])
    return KeyPart(name if of is None else f"{name}[{of}]", digest, value[:MOST_VALUE])


def nearest(key: Key, seen: Iterable[Key]) -> Key | None:
    """Of the keys that were seen at the same place the one that differs least, and of these the last; where there is
    none, so of the graphs with the same code. A `place` of "" is no place: a line of a library is in many programs.
    """
    near = [each for each in seen if is_at(each.place, key) or _same(each, key, "gm")]
    here = [each for each in near if is_at(each.place, key)]
    return min(reversed(here or near), key=lambda each: _distance(key, each), default=None)


def is_at(place: str, key: Key) -> bool:
    """Whether this is the place of a key."""
    return bool(place) and place == key.place


def _same(one: Key, other: Key, name: str) -> bool:
    here, there = one.parts.get(name), other.parts.get(name)
    return here is not None and there is not None and here.hash == there.hash


def _distance(key: Key, other: Key) -> int:
    return sum(1 for _ in _unlike(key, other))


def _unlike(key: Key, other: Key) -> Iterator[str]:
    for name in dict.fromkeys((*key.parts, *other.parts)):
        if not _same(key, other, name):
            yield name


def differences(key: Key, other: Key) -> tuple[Differs, ...]:
    """Which parts of `key` are not as in `other`, in words: what a user changed first, the graph's code last, which
    follows from most of it.
    """
    unlike = set(_unlike(key, other))
    names = [name for name in key.parts | other.parts if name in unlike and _FROM.get(name) not in unlike]
    names.sort(key=lambda name: (name == "gm", name.startswith("fx_kwargs")))
    found = list(_of_arguments(key, other))
    if len(found) > MOST_OF_ARGUMENTS:
        found[MOST_OF_ARGUMENTS:] = [Differs(f"{len(found) - MOST_OF_ARGUMENTS} more of its arguments")]
    moved = len(_arguments(key)) != len(_arguments(other))  # then positions say nothing new
    listed = [name for name in names if not name.startswith("example_inputs[")]
    found += [_differs(name, key, other) for name in listed if not (moved and name == "fx_kwargs[static_input_idxs]")]
    if len(found) > MOST_DIFFERS:
        found[MOST_DIFFERS - 1 :] = [Differs(f"{len(found) - MOST_DIFFERS + 1} other parts")]
    return tuple(found)


def _differs(name: str, key: Key, other: Key) -> Differs:
    now, before = key.parts.get(name), other.parts.get(name)
    show = name not in ("gm", "torch_version")
    return Differs(words(name), now.value if now and show else "", before.value if before and show else "")


def _arguments(key: Key) -> list[KeyPart]:
    return [part for name, part in key.parts.items() if name.startswith("example_inputs[")]


def _of_arguments(key: Key, other: Key) -> Iterator[Differs]:
    """Arguments are lined up by what they are: a size that became dynamic is one more of them, before its tensor."""
    now, before = _arguments(key), _arguments(other)
    names = key.parts["gm"].value.split(", ") if "gm" in key.parts else []
    lined = SequenceMatcher(None, [part.hash for part in before], [part.hash for part in now], autojunk=False)
    for kind, first, last, start, end in lined.get_opcodes():
        if kind == "equal":
            continue
        came = list(range(start, end))
        new_sizes = [index for index in came if "TensorMetadata" not in now[index].value][: len(came) - (last - first)]
        came = [index for index in came if index not in new_sizes]
        for index in new_sizes:
            yield Differs(f"{_named(index, names)}, a dynamic size, came")
        for index, was in zip_longest(came, before[first:last]):
            if index is None:
                yield Differs(f"an argument went: {_brief(was)}")
            else:
                yield from _of_argument(index, now[index], was, names)


def _named(index: int, names: list[str]) -> str:
    return f"argument {index + 1}" + (f" ({names[index]})" if index < len(names) else "")


def _brief(part: KeyPart) -> str:
    fields = _fields(part.value)
    return f"{_plain(fields['dtype'])}{_plain(fields['shape'])}" if {"dtype", "shape"} <= fields.keys() else part.value


def _of_argument(index: int, now: KeyPart, before: KeyPart | None, names: list[str]) -> Iterator[Differs]:
    named = _named(index, names)
    if before is None:
        yield Differs(f"{named} came")
        return
    here, there = _fields(now.value), _fields(before.value)
    unlike = [field for field in here if here[field] != there.get(field)] if there else []
    follows = {other for field in unlike for other in _FOLLOWS.get(field, ())}
    if not unlike:
        yield Differs(named, now.value, before.value)
    for field in unlike:
        if field not in follows:
            yield Differs(f"the {field.replace('_', ' ')} of {named}", _plain(here[field]), _plain(there[field]))


def _fields(value: str) -> dict[str, str]:
    """What torch prints of a tensor: "TensorMetadata(dtype=torch.float32, shape=torch.Size([4, 8]), ...)"."""
    _, metadata, inside = value.partition("TensorMetadata(")
    return {name: text.strip() for name, text in _FIELD.findall(inside)} if metadata else {}


def _plain(text: str) -> str:
    size = re.fullmatch(r"torch\.Size\((.*)\)", text)
    device = re.fullmatch(r"device\(type='(\w+)'(?:, index=(\d+))?\)", text)
    if device:
        return device[1] + (f":{device[2]}" if device[2] else "")
    return size[1] if size else text.removeprefix("torch.")


def words(name: str) -> str:
    """What a part is, of which torch has the name."""
    base, _, of = name.removesuffix("]").partition("[")
    if base == "fx_kwargs":
        return _ARGUMENT_WORDS.get(of, f"how it is compiled: {of}")
    if of and base in _OF_WORDS:
        return _OF_WORDS[base].format(of)
    if base.endswith(("_pass", "_passes")):
        return f"inductor config: {base}, by its uuid()"
    return _WORDS.get(base, base.replace("_", " ") + (f" {of}" if of else ""))


_BYPASSES = (
    (
        r"custom pass|_fusion_custom_pass|communication_pass",
        "give the pass a uuid(): derive it from torch._inductor.custom_graph_pass.CustomGraphPass",
    ),
    (r"HigherOrderOperator", "torch caches no graph with this operator: the rest of the function can be, on its own"),
    (r"frozen constants", "freezing puts weights into the code: without freezing the graph is cached"),
    (r"mkldnn tensors", "freezing packs weights for oneDNN: without freezing the graph is cached"),
    (r"[Rr]untime constant folding", "switch aot_inductor.use_runtime_constant_folding off"),
    (r"bisector", "torch's compiler bisector compiles everything again"),
)


def ways_out(answer: CacheAnswer) -> str:
    """What to change so that the cache is used, or has it, next time; "" where nothing is known."""
    if answer.outcome == "bypass":
        return next((words for pattern, words in _BYPASSES if re.search(pattern, answer.reason)), "")
    parts = {differs.part.partition(" (")[0] for differs in answer.differs}
    if parts and all(part.startswith("the shape of argument") for part in parts):
        return "sizes that change often can be dynamic (torch._dynamo.mark_dynamic): then one graph serves them all"
    return ""
