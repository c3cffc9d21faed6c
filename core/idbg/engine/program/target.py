"""Can this target be had here?"""

from difflib import get_close_matches

import torch
from msgspec.structs import replace

from idbg.config.options import INDUCTOR, family, nested
from idbg.engine.backends import Backend, takes_options
from idbg.engine.compat import settings
from idbg.engine.program.option_types import checked, checked_settings
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target


def check_device(target: Target) -> None:
    """Raises BadInput for a device that there is not."""
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
    """The target's options as its backend takes them, and what to tell of those that it is not given.

    Raises BadInput for an Inductor option, or a value of one, that there is not.
    """
    if not target.options:
        return {}, ""
    if target.options_for != family(target.backend):
        return {}, f"not used by {target.backend}: options that were given for {target.options_for} ({_names(target)})"
    if target.options_for == INDUCTOR:
        options = checked(target.options)
        told = "" if takes_options(backend) else f"{target.backend} uses no options: not {_names(target)}"
        return options, told
    if not takes_options(backend):
        return {}, f"the backend {target.backend} takes no options: {_names(target)} has no effect"
    return nested(target.options), ""


def conditions_of(target: Target) -> tuple[Target, str]:
    """The target with mode, stance, settings and sources as torch takes them, and what to tell of those that do
    nothing. Raises BadInput for a name or a value that torch does not have.
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


def _check_word(what: str, given: str, known: tuple[str, ...]) -> None:
    if given and given not in known:
        near = get_close_matches(given, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it is one of {', '.join(known)}"
        raise BadInput(f"torch has no {what} {given!r}", hint=hint)


def _names(target: Target) -> str:
    return ", ".join(target.options)
