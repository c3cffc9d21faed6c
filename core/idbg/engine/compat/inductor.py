"""Which options has Inductor, and what are their values?"""

import torch
import torch._inductor
import torch._inductor.config


def options() -> set[str]:
    """The names of all settings that torch.compile(options=...) takes."""
    return set(torch._inductor.list_options())


def option_type(name: str) -> object:
    """What torch's settings say that the option's values are: a class, or a typing construct."""
    return torch._inductor.config.get_type(name)  # type: ignore[attr-defined]


def mode_options(mode: str | None, dynamic: bool | None) -> dict[str, object]:
    """The Inductor options that a torch.compile mode stands for."""
    if mode in (None, "default"):
        return {}
    return dict(torch._inductor.list_mode_options(mode, dynamic))


def default_of(name: str) -> object:
    """What the option is where nobody sets it: torch reads some of them from the environment."""
    return torch._inductor.config._config[name].default  # type: ignore[attr-defined]
