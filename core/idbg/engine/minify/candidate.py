"""What is tried: a draft of a script, and the tensors that go beside it?"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from idbg.engine.repro.draft import Draft, Heading

Tensors = Callable[[], Mapping[str, torch.Tensor]]
"""Flat storages by the names of arguments, as `repro.values.arguments` makes them; made when they are asked for."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A script to be tried, and what it says of itself. `variant` says how its tensors differ from those that were
    recorded ("": not at all), for a draft tells of shapes and not of values.
    """

    draft: Draft
    heading: Heading
    tensors: Tensors
    variant: str = ""

    @property
    def key(self) -> str:
        """Of two candidates of one search with equal keys, one answer holds for both."""
        if not self.variant:
            return self.draft.key
        return hashlib.sha256(f"{self.draft.key} {self.variant}".encode()).hexdigest()
