"""Take a candidate apart: what creates each argument, and the draft around them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from idbg.engine.minify.shrink.fills import WEIGHTS, Fill, Form, recipe, resized
from idbg.engine.minify.shrink.literals import numbers
from idbg.engine.repro.draft import Candidate, Draft, Heading, Input, memory_span
from idbg.engine.repro.values import kept_as, stored

_FOREIGN = 5  # what a recipe weighs that was not made here: more than any that is


@dataclass(frozen=True, eq=False)
class Argument:
    """An argument of the draft. `form` is None for a Python value. Its values are those of `fill`, else the recorded
    ones (`recorded`, with the strides and sizes that it had), else what its own recipe makes.
    """

    input: Input
    form: Form | None = None
    fill: Fill | None = None
    recorded: torch.Tensor | None = None

    @property
    def is_stored(self) -> bool:
        """Whether its values are in the file."""
        return self.fill is None and self.recorded is not None and not self.input.literal

    @property
    def is_ours(self) -> bool:
        """Whether its form can be another: not where a recipe of others makes it."""
        return self.fill is not None or self.recorded is not None

    @property
    def is_recast(self) -> bool:
        """Whether what is stored has another dtype than what was recorded."""
        return self.recorded is not None and self.form is not None and self.form.dtype != self.recorded.dtype

    @property
    def as_input(self) -> Input:
        """The argument of a draft."""
        if self.form is None:
            return self.input
        shaped = replace(self.input, shape=self.form.shape, stride=self.form.stride, device=self.form.device)
        if self.fill is not None:
            return replace(shaped, recipe=recipe(self.fill, self.form), dtype="")
        if not self.is_stored:
            return self.input
        kept = kept_as(self.form.dtype)
        return replace(shaped, dtype="" if kept == self.form.dtype else str(self.form.dtype))

    def value(self) -> torch.Tensor:
        """The stored tensor: the recorded values that its form covers."""
        assert self.recorded is not None and self.form is not None
        form, recorded = self.form, self.recorded
        if form.stride == recorded.stride():
            room = memory_span(recorded.shape, recorded.stride())
            return recorded.as_strided((room,), (1,)).to(form.dtype).as_strided(form.shape, form.stride)
        made = torch.zeros(form.room, dtype=form.dtype).as_strided(form.shape, form.stride)
        return made.copy_(recorded[tuple(slice(0, size) for size in form.shape)])

    def with_shape(self, shape: tuple[int, ...]) -> "Argument":
        """The argument with other sizes, none above the present ones."""
        assert self.form is not None
        return replace(self, form=resized(self.form, shape))


@dataclass(frozen=True, eq=False)
class Parts:
    """A draft whose arguments are taken apart; those of `draft` itself are not up to date."""

    draft: Draft
    heading: Heading
    arguments: tuple[Argument, ...] = field(default=())

    def candidate(self) -> Candidate:
        """The candidate of these parts."""
        kept = [each for each in self.arguments if each.is_stored]
        draft = replace(self.draft, arguments=tuple(each.as_input for each in self.arguments), values=self._origin())
        recast = [f"{each.input.name} {each.form.dtype}" for each in kept if each.form and each.is_recast]
        variant = " ".join(recast)
        return Candidate(draft, self.heading, lambda: {each.input.name: stored_as(each) for each in kept}, variant)

    def changed(self, change: Callable[[Argument], Argument | None], lines: Sequence[str] = ()) -> "Parts | None":
        """The parts with other arguments (None: it stays) and, if given, statements; None if nothing changes."""
        arguments = tuple(change(each) or each for each in self.arguments)
        statements = tuple(lines) or self.draft.statements
        if arguments == self.arguments and statements == self.draft.statements:
            return None
        return replace(self, arguments=arguments, draft=replace(self.draft, statements=statements))

    def size(self) -> "Size":
        """Its size."""
        draft, arguments = self.draft, self.arguments
        kept = [each for each in arguments if each.is_stored]
        forms = [each.form for each in arguments if each.form is not None]
        marks = sum(len(each.input.dynamic) + len(each.input.marked) for each in arguments)
        flags = sum(each.input.requires_grad + each.input.is_weight for each in arguments) + marks
        lines = [line for line in draft.statements if not line.lstrip().startswith("#")]
        texts = [each.as_input.text for each in arguments if not each.is_stored]
        return Size(
            lines=len(lines),
            extras=sum(map(len, (draft.settings, draft.modes, draft.definitions, draft.imports, arguments))) + flags,
            how=len(draft.how) + len(draft.rules),
            stored=sum(each.form.room for each in kept if each.form),
            made=sum(_weight(each) for each in arguments),
            odd=sum(_oddities(form) for form in forms),
            elements=sum(form.room for form in forms) + sum(map(_value, arguments)),
            arguments=sum(line.count(",") + line.count("(") for line in lines),
            constants=sum(weight_of(number.value) for number in numbers(draft.statements)),
            text=sum(map(len, lines)) + sum(map(len, texts)),
        )

    def _origin(self) -> str:
        kept = [each.input.name for each in self.arguments if each.is_stored]
        if all(each.fill is None for each in self.arguments):
            return self.draft.values
        if not kept:
            return "made here; it fails with these as with the program's own"
        return f"{', '.join(kept)}: {self.draft.values}; the others are made here"


@dataclass(frozen=True, order=True)
class Size:
    """The size of a candidate; earlier counts matter more. Each step lowers it, so that the steps terminate."""

    lines: int
    extras: int
    how: int
    stored: int
    made: int
    odd: int
    elements: int
    arguments: int
    constants: int
    text: int


def taken_apart(candidate: Candidate) -> Parts:
    """The parts of a candidate."""
    tensors = candidate.tensors()
    arguments = tuple(_argument(each, tensors) for each in candidate.draft.arguments)
    return Parts(candidate.draft, candidate.heading, arguments)


def plain_dtype(dtype: torch.dtype) -> torch.dtype:
    """The plain dtype of the same kind; integers and booleans are unchanged."""
    if dtype.is_complex:
        return torch.complex64
    return torch.float32 if dtype.is_floating_point else dtype


def weight_of(value: float) -> int:
    """The weight of a number in the statements: 0 up to 3, as for dimensions; then by its length."""
    if value in (0, 1, 2, 3):
        return 0
    return value.bit_length() if isinstance(value, int) else 1 + len(repr(value))


def stored_as(argument: Argument) -> torch.Tensor:
    """A stored argument as the file has it."""
    return stored(argument.input.name, argument.value())[0]


def _argument(given: Input, tensors: Mapping[str, torch.Tensor]) -> Argument:
    if given.literal:
        return Argument(given)
    if given.recipe:
        return _of_recipe(given)
    flat = tensors[given.name]
    if given.dtype:
        flat = flat.view(getattr(torch, given.dtype.removeprefix("torch.")))
    recorded = flat.as_strided(given.shape, given.stride)
    return Argument(given, Form(given.shape, given.stride, recorded.dtype, given.device or "cpu"), recorded=recorded)


def _of_recipe(given: Input) -> Argument:
    """A tensor that is made already; of what does not run by itself nothing is known, and it stays as it is."""
    try:
        with torch.device("meta"):
            made: object = eval(given.recipe, {"torch": torch, "__builtins__": {"complex": complex}})
    except (RuntimeError, TypeError, ValueError, NameError, AttributeError, SyntaxError, LookupError, ArithmeticError):
        return Argument(given)
    if not isinstance(made, torch.Tensor) or made.layout != torch.strided:
        return Argument(given)
    return Argument(given, Form(tuple(made.shape), tuple(made.stride()), made.dtype, given.device or "cpu"))


def _weight(argument: Argument) -> int:
    if argument.input.literal or argument.is_stored or argument.form is None:
        return 0
    made = WEIGHTS[argument.fill.kind] if argument.fill is not None else _FOREIGN
    return made + (not argument.form.is_contiguous)


def _oddities(form: Form) -> int:
    """The number of properties that a new tensor does not have."""
    return (plain_dtype(form.dtype) != form.dtype) + (not form.is_contiguous) + (form.device != "cpu")


def _value(argument: Argument) -> int:
    """A Python value that is a size counts as elements do."""
    text = argument.input.literal
    return int(text) if text.isdigit() else 0
