"""Can this target be had here?"""

import torch

from idbg.config.options import INDUCTOR, family, nested
from idbg.engine.backends import Backend, takes_options
from idbg.engine.program.option_types import checked
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


def _names(target: Target) -> str:
    return ", ".join(target.options)
