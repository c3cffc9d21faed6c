"""Compile a program with only a part of torch's compiler in use, draw random options, and describe how a run failed."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from idbg.engine.compat import bisector, settings
from idbg.engine.compat.bisector import Applications
from idbg.engine.repro.error_message import fragment, shortened
from idbg.schema.bisection import PYTHON, Answer, Level, OptionSet, Subsystem
from idbg.schema.diff import DiffReport
from idbg.schema.errors import BadInput
from idbg.schema.programs import Failure, OptionValue, Target
from idbg.schema.repros import Signature
from idbg.schema.runs import Run


def target_at(level: Level, target: Target) -> Target:
    """The target with the level's backend, and with its part switched off if a setting does that."""
    if level.backend in ("", PYTHON):
        return target
    at = replace(target, own_backend=False)
    if level.backend != "inductor":
        at = replace(at, backend=level.backend, options={})
    known = subsystem(level)
    if known is None or not known.setting or known.config != "inductor":
        return at
    return replace(at, options={**at.options, known.setting: known.value})


def subsystem(level: Level) -> Subsystem | None:
    """The level's part in torch's table; None if the level has none."""
    return next((one for each in bisector.parts() for one in each.subsystems if one.name == level.subsystem), None)


@contextmanager
def at_level(
    level: Level,
    settings: Mapping[str, OptionValue],
    on_application: Callable[[Applications], None] = lambda applied: None,
) -> Iterator[Applications]:
    """In this context torch compiles at this level, with these settings ("dynamo.NAME", "functorch.NAME");
    `on_application` is called at each application of a part.

    Raises BadInput for a setting that torch does not have.
    """
    known = subsystem(level)
    patched = dict(settings)
    if known is not None and known.setting and known.config != "inductor":
        patched[f"functorch.{known.setting}"] = known.value  # where torch's other backends read it
    with ExitStack() as stack:
        for name, value in patched.items():
            stack.enter_context(_set(name, value))
        limit = level if known is not None and not known.setting else Level(level.backend, graphs=level.graphs)
        yield stack.enter_context(bisector.limited(limit, on_application))


@contextmanager
def _set(name: str, value: OptionValue) -> Iterator[None]:
    place, _, field = name.partition(".")
    config = bisector.config(place)
    try:
        patched = config.patch({field: value})
        patched.__enter__()
    except (AttributeError, KeyError, TypeError, AssertionError) as error:
        raise BadInput(
            f"torch has no setting {name} that can be {value!r}", hint=f"torch._{place}.config names them all"
        ) from error
    try:
        yield
    finally:
        patched.__exit__(None, None, None)


# settings that end, slow or silence the try, need other hardware, or are not for torch.compile
_NOT_DRAWN = (
    "compile_threads", "worker_", "remote_", "trace.", "autotune_local_cache", "force_disable_caches", "max_autotune",
    "cpu_backend", "cuda_backend", "xpu_backend", "distributed", "aten_distributed", "aot_inductor", "rocm.", "halide.",
)  # fmt: skip

_CHANCE = 0.2  # of each option's


def drawn(seed: int) -> OptionSet:
    """Some of Inductor's options, each with another value than its default; the same for a seed.

    Torch's `ConfigFuzzer` knows the values of each setting, and which to leave alone. Its search runs in one process,
    which a crash would end: only its sampling is used. Only bools and choices are drawn: its numbers and texts mean
    nothing (a tile of 731, a compiler "$x").
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


_LINE = 200  # characters of a message


def answer_of(run: Run, *, uncompiled: bool) -> Answer:
    """How a run failed, so that equal failures can be recognized. `uncompiled`: nothing is to be compiled, so that
    compiling nothing is no failure.
    """
    failure = run.cause
    if failure is not None and failure.kind == "input":
        if uncompiled and not run.frames:
            return Answer()
        return Answer(cannot=_line(failure.message))
    if run.diff is not None and run.diff.verdict == "failed":
        return Answer(Signature("wrong"), words=_wrong(run.diff), compiled=True)
    if failure is not None:
        own = failure.lowering if failure.kind == "user" else None
        return Answer(_signature(failure), words=_words(failure), lowering=own, compiled=bool(run.frames))
    if run.exit_status:
        words = f"the script ends with exit status {run.exit_status}"
        return Answer(Signature("check", type=f"exit status {run.exit_status}"), words=words, compiled=bool(run.frames))
    return Answer(compiled=bool(run.frames))


def _signature(failure: Failure) -> Signature:
    return Signature(
        "runtime" if failure.kind == "user" else "compile",
        type=failure.type,
        message=fragment(shortened(failure.message)),
    )


def _words(failure: Failure) -> str:
    line = _line(failure.message)
    return line if line.startswith(failure.type) else f"{failure.type}: {line}".removesuffix(": ")


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LINE else first[: _LINE - 4] + " ..."


def _wrong(report: DiffReport) -> str:
    failed = [one for one in (*report.outputs, *report.gradients) if one.failed]
    if not failed:
        return "its numbers are wrong"
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"wrong numbers in {failed[0].name}{more}"
