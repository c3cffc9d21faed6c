"""A script before it is text: its arguments, statements, and the check of its failure.

A search makes drafts smaller; `script.render` writes one. Equal drafts are the same try.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from idbg.schema.repros import Signature


@dataclass(frozen=True)
class Input:
    """One argument: a stored tensor with its shape, stride and device, or, with `literal`, a Python value, or, with
    `recipe`, Python that makes the tensor ("torch.ones(4, 4)"), which is run with torch's seed at 0.

    What is stored is the memory that it lies in, flat (`values.stored` makes both). `dtype` is given where it is stored
    as another one; `dynamic` are the dimensions whose size is symbolic, `marked` those that the program marked so that
    torch refuses to make them constants. With `is_weight` it is passed as a Parameter,
    so that rules about weights know it for one; with `is_array` as NumPy's.
    """

    name: str
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    device: str = ""
    literal: str = ""
    dtype: str = ""
    dynamic: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()
    requires_grad: bool = False
    is_weight: bool = False
    is_array: bool = False
    recipe: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether its value is in the tensors' file."""
        return not self.literal and not self.recipe

    @property
    def text(self) -> str:
        """The argument as Python."""
        if self.literal:
            return self.literal
        text = self.recipe or self._stored
        text += ".requires_grad_()" if self.requires_grad else ""
        text = f"weight({text})" if self.is_weight else text
        if self.is_array:
            return f"{text}.numpy()"
        text = f"dynamic({text}, {', '.join(map(str, self.dynamic))})" if self.dynamic else text
        return f"marked({text}, {', '.join(map(str, self.marked))})" if self.marked else text

    @property
    def _stored(self) -> str:
        text = f'saved["{self.name}"]'
        text += f".view({self.dtype})" if self.dtype else ""
        text += f'.to("{self.device}")' if self.device != "cpu" else ""
        if not is_contiguous(self.shape, self.stride):
            return f"{text}.as_strided({self.shape}, {self.stride})"
        return text if len(self.shape) == 1 else f"{text}.view({', '.join(map(str, self.shape)) or '()'})"


def memory_span(shape: Sequence[int], stride: Sequence[int]) -> int:
    """The number of elements from the first to the last in memory."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if all(shape) else 0


def is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether these are just the strides that torch gives a new tensor of this shape."""
    step = 1
    for size, each in zip(reversed(shape), reversed(stride), strict=True):
        if each != step:
            return False
        step *= max(size, 1)
    return True


@dataclass(frozen=True)
class Raises:
    """It raises an exception of this type, whose message has `fragment` in it; where there is no such piece to tell it
    by, in `function`, the innermost of its traceback. `stage`: where, in words.
    """

    error: str
    fragment: str
    stage: str = ""
    function: str = ""


Subject = Literal["node", "input", "graph"]


@dataclass(frozen=True)
class Breaks:
    """The script violates this rule: at its marked node, by its one argument, or as a whole graph. `op`: the node's."""

    rule: str
    subject: Subject = "node"
    op: str = ""


@dataclass(frozen=True)
class Differs:
    """Its compiled result is wrong: further from float64 than `k` times what eager is, and than `least` of its RMS;
    or has NaN or infinities where eager has none ("nan"), or not those of eager ("lost"); or another dtype, shape or
    structure ("form").
    """

    wrong: Literal["values", "nan", "lost", "form"] = "values"
    least: float = 0.0
    k: float = 3.0


@dataclass(frozen=True)
class Dies:
    """Its process dies of this signal ("SIGSEGV") within so many seconds."""

    signal: str
    seconds: float = 600.0


@dataclass(frozen=True)
class Hangs:
    """The script does not end within this time."""

    seconds: float


@dataclass(frozen=True)
class FailsCommand:
    """A command of the user's, given the script's path as its last argument, exits with this status."""

    command: tuple[str, ...]
    status: int


@dataclass(frozen=True)
class Runs:
    """Nothing is wrong: a script to begin with. It says how far compiled and eager are apart."""


MARK = "  # the node"
"""The comment that marks the line of the node for `Breaks` with the subject "node"."""

Check = Raises | Breaks | Differs | Dies | Hangs | FailsCommand | Runs


@dataclass(frozen=True)
class Draft:
    """A script, but for its heading. `statements` are the lines of `program`, comments with the user's lines among
    them; `result` is what it returns. `how` are the arguments of torch.compile after the program; `settings` lines that
    set torch up; `modes` expressions of `with`; `definitions` the user's own source that it needs; `values` says where
    the arguments' values are from; `rules` is the accelerator's TOML.
    """

    check: Check
    arguments: tuple[Input, ...]
    statements: tuple[str, ...]
    result: str
    how: str
    values: str = ""
    imports: frozenset[str] = frozenset()
    definitions: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    rules: str = ""

    @property
    def key(self) -> str:
        """Names what it does: of two drafts with equal keys one answer holds for both."""
        code = [line for line in self.statements if not line.lstrip().startswith("#")]
        parts = (self.check, self.arguments, code, self.result, self.how, sorted(self.imports), self.definitions)
        return hashlib.sha256(repr((*parts, self.settings, self.modes, self.rules)).encode()).hexdigest()


@dataclass(frozen=True)
class Heading:
    """What a script says of itself: `title`, more lines of the `message`, the user's `source` line, a `note`, the
    `versions` that it was written with, and the `signature` it looks for.
    """

    title: str
    versions: str
    message: tuple[str, ...] = ()
    source: str = ""
    note: str = ""
    signature: Signature | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """A draft with its heading and tensors: flat storages by the names of arguments, as `values.arguments` makes them.

    `variant` says how the tensors differ from the recorded ones ("": not at all), as a draft has shapes but no values.
    """

    draft: Draft
    heading: Heading
    tensors: Callable[[], Mapping[str, torch.Tensor]]
    variant: str = ""

    @property
    def key(self) -> str:
        """Candidates of one search with equal keys have the same result."""
        if not self.variant:
            return self.draft.key
        return hashlib.sha256(f"{self.draft.key} {self.variant}".encode()).hexdigest()
