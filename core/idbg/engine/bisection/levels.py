"""Compile a program with only a part of torch's compiler in use, and with given settings."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from msgspec.structs import replace

from idbg.engine.compat import bisector
from idbg.engine.compat.bisector import Applications
from idbg.schema.bisection import PYTHON, Level, Subsystem
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target


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
