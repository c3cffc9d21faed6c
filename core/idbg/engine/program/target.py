"""Check whether a target is available here, and apply its settings while a program runs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from msgspec.structs import replace

from idbg.config.options import INDUCTOR, family, nested
from idbg.engine.backends import Backend, takes_options
from idbg.engine.compat import caches, settings
from idbg.engine.program.option_types import checked, checked_settings
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target


def check_device(target: Target) -> None:
    """Raises BadInput for a device that does not exist."""
    if target.device:
        try:
            kind = torch.device(target.device).type
        except RuntimeError as error:
            raise BadInput(f"there is no device {target.device!r}", hint=str(error).splitlines()[0]) from error
        if kind == "cuda" and not torch.cuda.is_available():
            raise BadInput(
                "this machine has no usable CUDA GPU", hint="run it where there is one, or with --device cpu"
            )


def options_of(target: Target, backend: Backend) -> tuple[dict[str, OptionValue], str]:
    """The target's options as its backend takes them, and a note on options that it is not given.

    Raises BadInput for an unknown Inductor option or value.
    """
    if not target.options:
        return {}, ""
    if target.options_for != family(target.backend):
        return {}, f"not used by {target.backend}: options that were given for {target.options_for} ({_names(target)})"
    if target.options_for == INDUCTOR:
        options = checked(target.options)
        note = "" if takes_options(backend) else f"{target.backend} uses no options: not {_names(target)}"
        return options, note
    if not takes_options(backend):
        return {}, f"the backend {target.backend} takes no options: {_names(target)} has no effect"
    return nested(target.options), ""


def conditions_of(target: Target) -> tuple[Target, str]:
    """The target with mode, stance, settings and sources as torch takes them, and a note on those without effect.
    Raises BadInput for a name or a value that torch does not have.
    """
    _check_word("mode", target.mode, settings.modes())
    _check_word("stance", target.stance, settings.stances())
    for source in target.dynamic_sources:
        if not source.strip() or "," in source:
            raise BadInput(f"{source!r} is no source", hint="""for example --dynamic-source "L['x']", once for each""")
    checked_target = replace(target, settings=checked_settings(target.settings))
    has_modes = family(target.backend) == INDUCTOR and target.backend not in ("eager", "mock")
    unused = target.mode not in ("", "default") and not has_modes
    return checked_target, f"{target.backend} has no modes: {target.mode} does nothing" if unused else ""


def _check_word(what: str, name: str, known: tuple[str, ...]) -> None:
    if name and name not in known:
        hint = did_you_mean(name, known, f"it is one of {', '.join(known)}")
        raise BadInput(f"torch has no {what} {name!r}", hint=hint)


def _names(target: Target) -> str:
    return ", ".join(target.options)


# While the program runs

Reapply = Callable[[], None]
"""Called before the program compiles: it may have changed a setting itself."""


@contextmanager
def target_settings(target: Target, tell: Callable[[str], None]) -> Iterator[Reapply]:
    """While it lasts, the target's stance, settings and sources hold, whatever the program sets before it compiles;
    then torch is as it would be without them. `tell` is called at the end with what did not hold.
    """
    caches.forget_last()
    temporary = settings.TemporarySettings(_values(target))
    with ExitStack() as stack:
        if target.cold:
            stack.enter_context(caches.fresh_caches())
        if target.stance:
            stack.enter_context(settings.stance(target.stance))
        stack.callback(temporary.restore)
        temporary.set()
        try:
            yield temporary.set
        finally:
            for name, value in temporary.overridden().items():
                tell(f"{name} was {value!r} at the end and not as set: the program or the environment changes it")


def _values(target: Target) -> dict[str, OptionValue]:
    sources = {"compiler.dynamic_sources": ",".join(target.dynamic_sources)} if target.dynamic_sources else {}
    early = {f"inductor.{name}": target.options[name] for name in settings.READ_BY_DYNAMO if name in target.options}
    return {**target.settings, **sources, **(early if target.options_for == INDUCTOR else {})}
