"""Can this target be had here?"""

from difflib import get_close_matches

import torch

from idbg.engine import compat
from idbg.errors import BadInput
from idbg.records import Target


def check_target(target: Target) -> None:
    """Raises BadInput for a device or an Inductor option that there is not."""
    if target.device:
        try:
            kind = torch.device(target.device).type
        except RuntimeError as error:
            raise BadInput(f"there is no device {target.device!r}", hint=str(error).splitlines()[0]) from error
        if kind == "cuda" and not torch.cuda.is_available():
            raise BadInput(
                "this machine has no usable CUDA GPU", hint="run it where there is one, or with --device cpu"
            )
    unknown = target.options.keys() - compat.inductor_options()
    if unknown:
        name = min(unknown)
        near = get_close_matches(name, compat.inductor_options(), n=1)
        hint = f"did you mean {near[0]}?" if near else "torch._inductor.list_options() names them all"
        raise BadInput(f"Inductor has no option {name!r}", hint=hint)
