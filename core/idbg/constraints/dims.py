"""The dimensions of a tensor that a rule means."""

import re
from collections.abc import Iterator

from idbg.constraints.base import BadValue, TensorRule
from idbg.format.spelling import did_you_mean
from idbg.schema.graphs import Dim, Role, TensorMeta

_NAMED = {"batch": 0, "channels": 1, "height": -2, "width": -1}
_LAST = re.compile(r"last( [1-9][0-9]{0,2})?")


class DimsRule(TensorRule, frozen=True, kw_only=True):
    """A rule about the sizes of `dims`: "all", "last", "last 2", or a list of positions and names.

    Negative positions count from the end; those that a tensor does not have are skipped. "batch" is the first,
    "channels" the second of 3 to 5, "height" and "width" the last two of 4 or 5, as PyTorch orders images. With `batch`
    false, the first dimension of what has two or more is left out, but for weights, which have no batch.
    """

    dims: str | tuple[int | str, ...] = "all"
    batch: bool = True

    def validate(self) -> None:
        """`dims` is one of its words, or a list of positions and of names that there are."""
        if isinstance(self.dims, str):
            if self.dims != "all" and not _LAST.fullmatch(self.dims):
                near = did_you_mean(self.dims, ("all", "last", *_NAMED), form='"{}"'.format)
                hint = f"{near} ".lstrip()
                hint += 'It must be "all", "last", "last 2", or a list such as [0, -1, "channels"]'
                raise BadValue("dims", f'dims is "{self.dims:.40}"', hint=hint)
            return
        for position in self.dims:
            if isinstance(position, str) and position not in _NAMED:
                raise BadValue("dims", f'dims holds "{position}"', hint=f"names are: {', '.join(_NAMED)}; or numbers")

    def odd(self) -> str:
        """An empty list of dimensions is about nothing."""
        return TensorRule.odd(self) if self.dims else "it is about no dimension: dims is empty"

    def sizes(self, tensor: TensorMeta, role: Role) -> Iterator[tuple[int, Dim]]:
        """The position and size of each dimension that the rule is about."""
        rank = len(tensor.shape)
        skip_first = not self.batch and rank > 1 and role not in ("weight", "buffer")
        for position in self._positions(rank):
            if position or not skip_first:
                yield position, tensor.shape[position]

    def _positions(self, rank: int) -> list[int]:
        if self.dims == "all":
            return list(range(rank))
        if isinstance(self.dims, str):
            count = int(self.dims.partition(" ")[2] or 1)
            return list(range(max(rank - count, 0), rank))
        return sorted({place for given in self.dims if (place := _place(given, rank)) is not None})


def _place(position: int | str, rank: int) -> int | None:
    if isinstance(position, str):
        if (position == "channels" and not 3 <= rank <= 5) or (position in ("height", "width") and rank not in (4, 5)):
            return None
        position = _NAMED[position]
    return position % rank if -rank <= position < rank else None
