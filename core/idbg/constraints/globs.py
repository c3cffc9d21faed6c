"""Match calls with globs of operation names."""

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache

from idbg.analysis import ops
from idbg.constraints.facts import NodeSignature


def matches(signature: NodeSignature, globs: tuple[str, ...]) -> bool:
    """Whether what the call is called, at whatever stage, matches any of the globs; never for what is not a call."""
    names = ops.names(signature)
    return bool(names) and matches_any((*names, *ops.targets(signature.target, names)), globs)


def first_match(signature: NodeSignature, globs: Iterable[str]) -> str:
    """The first glob that the call matches, "" if there is none."""
    return next((glob for glob in globs if matches(signature, (glob,))), "")


@lru_cache(maxsize=1 << 16)
def matches_any(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    """Whether any of the names matches any of the globs."""
    return any(map(_matcher(globs), names))


@lru_cache(maxsize=1 << 14)
def _matcher(globs: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    spellings = [spelling for glob in globs for spelling in _spellings(glob)]
    return re.compile("|".join(map(translate, spellings)) or r"(?!)").fullmatch


def _spellings(glob: str) -> tuple[str, ...]:
    """A Python function's path stands for its op as well: "torch.nn.functional.conv2d" means conv2d at every stage."""
    glob = glob.removeprefix("torch.ops.")
    if (
        glob.startswith(("torch.", "operator.", "_operator."))
        and not ops.is_overload(glob)
        and not set(glob) & set("*?[")
    ):
        return glob, ops.short_name(glob)
    return (glob,)
