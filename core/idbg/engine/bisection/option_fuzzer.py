"""Draw random Inductor options with torch's `ConfigFuzzer`.

It knows the values of each setting, and which settings to leave alone. Its search runs in one process, which a crash
would end, so only its sampling is used. Same in torch 2.11 and 2.14.
"""

import random
from typing import Any, cast

import msgspec

from idbg.engine.compat import bisector, settings
from idbg.schema.bisection import OptionSet
from idbg.schema.programs import OptionValue

# settings that end, slow or silence the try, need other hardware, or are not for torch.compile
_NOT_DRAWN = (
    "compile_threads", "worker_", "remote_", "trace.", "autotune_local_cache", "force_disable_caches", "max_autotune",
    "cpu_backend", "cuda_backend", "xpu_backend", "distributed", "aten_distributed", "aot_inductor", "rocm.", "halide.",
)  # fmt: skip

_CHANCE = 0.2  # of each option's


def drawn(seed: int) -> OptionSet:
    """Some of Inductor's options, each with another value than its default; the same for a seed.

    Only bools and choices: torch's fuzzer draws numbers and texts that mean nothing (a tile of 731, a compiler "$x").
    """
    fuzzer = bisector.fuzzer(seed)
    random.seed(seed)  # the fuzzer draws by Python's own generator
    known = settings.options()
    found: OptionSet = {}
    for name in sorted(fuzzer.fields):
        field = fuzzer.fields[name]
        if name in fuzzer.default or name not in known or not _is_drawn(name) or not _is_choice(field):
            continue
        if random.random() < _CHANCE and (value := _drawn(fuzzer, name, field)) is not None and value != field.default:
            found[name] = value
    return found


def _is_drawn(name: str) -> bool:
    private = any(part.startswith("_") for part in name.split("."))
    return not private and "TESTING_ONLY" not in name and not name.startswith(_NOT_DRAWN)


def _is_choice(field: Any) -> bool:
    return field.value_type is bool or "Literal" in str(field.value_type)


def _drawn(fuzzer: Any, name: str, field: Any) -> OptionValue:
    """None for what is no plain value, and for a type that the fuzzer cannot draw from."""
    try:
        value = fuzzer.sample(name, field.value_type, field.default)
        return cast("OptionValue", msgspec.convert(value, OptionValue))
    except (ValueError, TypeError, msgspec.ValidationError):
        return None
