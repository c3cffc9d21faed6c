"""How is a program compiled with only so much of torch's compiler in use, and under which of its settings?"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from msgspec.structs import replace

from idbg.engine.compat import bisector
from idbg.engine.compat.bisector import Applications
from idbg.schema.bisection import PYTHON, Level, Subsystem
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target


def target_at(level: Level, target: Target) -> Target:
    """The target that compiles at this level: by the level's backend, and with the part off that a setting is."""
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
    """What torch's table says of the level's part; None where the level has none."""
    return next((one for each in bisector.parts() for one in each.subsystems if one.name == level.subsystem), None)


@contextmanager
def at_level(
    level: Level, settings: Mapping[str, OptionValue], changed: Callable[[Applications], None] = lambda applied: None
) -> Iterator[Applications]:
    """While it lasts, torch compiles at this level, with these settings ("dynamo.NAME", "functorch.NAME"). `changed` is
    called before each application of a part.

    Raises BadInput for a setting that torch does not have.
    """
    known = subsystem(level)
    asked = dict(settings)
    if known is not None and known.setting and known.config != "inductor":
        asked[f"functorch.{known.setting}"] = known.value  # torch's other backend takes it from there
    with ExitStack() as stack:
        for name, value in asked.items():
            stack.enter_context(_set(name, value))
        limit = level if known is not None and not known.setting else Level(level.backend, graphs=level.graphs)
        yield stack.enter_context(bisector.limited(limit, changed))


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
