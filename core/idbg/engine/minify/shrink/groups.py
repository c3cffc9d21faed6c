"""Group the sizes that change together: dimensions of arguments, and numbers in the statements."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from idbg.engine.minify.shrink.dry_run import DryRun
from idbg.engine.minify.shrink.literals import numbers, replaced
from idbg.engine.minify.shrink.parts import Argument, Parts

_SECONDS = (
    10.0  # of the processor, for all groups: with many arguments, those that are not found by then cost tries instead
)


@dataclass(frozen=True)
class Slot:
    """Where a size stands: a dimension of an argument, an argument that is a number, the n-th number of the
    statements.
    """

    kind: Literal["dim", "argument", "number"]
    name: str = ""
    at: int = 0


@dataclass(frozen=True)
class Group:
    """The slots that have one size, those that have a multiple of it, and those of a multiple of its square."""

    base: Slot
    slots: frozenset[Slot]
    squares: frozenset[Slot] = frozenset()

    def size(self, parts: Parts) -> int:
        """The present size."""
        return sizes(parts).get(self.base, 0)

    def at(self, parts: Parts, size: int) -> Parts | None:
        """The parts with this size instead; None where it cannot be that, or is so already."""
        held = sizes(parts)
        now = held.get(self.base, 0)
        powers = {slot: 2 if slot in self.squares else 1 for slot in (*self.slots, *self.squares) if slot in held}
        if now < 1 or size == now or any(held[slot] % now**power for slot, power in powers.items()):
            return None
        new = {slot: held[slot] // now**power * size**power for slot, power in powers.items()}
        return resized(parts, new, now, size)

    def floor(self, parts: Parts) -> int:
        """The least that it can be: torch makes symbols of sizes from 2 on."""
        open_ = {(each.input.name, at) for each in parts.arguments for at in each.input.dynamic}
        return 2 if any((slot.name, slot.at) in open_ for slot in self.slots if slot.kind == "dim") else 1


def sizes(parts: Parts) -> dict[Slot, int]:
    """All sizes, and the whole numbers that may be some."""
    found = {
        Slot("dim", each.input.name, at): size
        for each in parts.arguments
        if each.form is not None
        for at, size in enumerate(each.form.shape)
    }
    found |= {
        Slot("argument", each.input.name): int(each.input.literal)
        for each in parts.arguments
        if each.input.literal.isdigit()
    }
    literals = enumerate(numbers(parts.draft.statements))
    return found | {
        Slot("number", at=at): int(each.value)
        for at, each in literals
        if isinstance(each.value, int) and not each.is_place
    }


def resized(parts: Parts, new: Mapping[Slot, int], old: int, size: int) -> Parts | None:
    """The parts with these sizes. Where `old` may have been what whole numbers index, they stay below the new size."""
    arguments = tuple(_resized(each, new, old, size) for each in parts.arguments)
    if any(each is None for each in arguments):
        return None
    literals = numbers(parts.draft.statements)
    edits = [(literals[slot.at], str(value)) for slot, value in new.items() if slot.kind == "number"]
    statements = replaced(parts.draft.statements, edits)
    kept = tuple(each for each in arguments if each is not None)
    return replace(parts, arguments=kept, draft=replace(parts.draft, statements=statements))


def groups(parts: Parts, dry_run: DryRun) -> list[Group]:
    """What can change together. Where it is known what runs, the least that still runs, as far as that is found in
    time; else those of one size are one.
    """
    held = sizes(parts)
    bases = sorted((slot for slot in held if held[slot] > 1), key=lambda slot: (slot.kind == "number", -held[slot]))
    end = time.thread_time() + _SECONDS
    found: list[Group] = []
    for base in bases:
        if any(base in each.slots for each in found):
            continue
        is_late = not dry_run.is_known or time.thread_time() > end
        group = None if is_late else _together(parts, base, found, dry_run)
        if group is None and base.kind != "number":
            group = alike(parts, base)
        if group is not None and (len(group.slots) > 1 or base.kind != "number"):
            found.append(group)
    return found


def alike(parts: Parts, base: Slot, *, with_numbers: bool = True) -> Group:
    """All that have this size, and the numbers that are its product with another."""
    held = sizes(parts)
    size = held[base]
    dims = [value for slot, value in held.items() if slot.kind != "number"]
    chosen = [slot for slot, value in held.items() if value == size and (with_numbers or slot.kind != "number")]
    spelled = [slot for slot in held if slot.kind == "number" and with_numbers and held[slot] > size]
    products = [slot for slot in spelled if held[slot] in {size * other for other in dims if other not in (1, size)}]
    squares = [slot for slot in spelled if held[slot] == size * size and dims.count(size) > 1]
    return Group(base, frozenset([*chosen, *products]), frozenset(squares))


def _together(parts: Parts, base: Slot, found: Sequence[Group], dry_run: DryRun) -> Group | None:
    """The least that runs where this size is doubled: twice a size can be divided by all that it could be. Whatever
    lets more statements run than without it is doubled as well, until all do. None where that is not found.
    """
    held = sizes(parts)
    related = _related(held, base, found)
    slots, (steps, is_whole) = [base], _doubled(parts, [base], dry_run)
    while not is_whole:
        for more in related:
            with_more = list(dict.fromkeys([*slots, *more]))
            after, runs = _doubled(parts, with_more, dry_run) if len(with_more) > len(slots) else (0, False)
            if runs or after > steps:
                slots, steps, is_whole = with_more, after, runs
                break
        else:
            return None
    for slot in slots[1:]:
        rest = [each for each in slots if each != slot]
        if _doubled(parts, rest, dry_run)[1]:
            slots = rest
    least = min(slots, key=lambda slot: held[slot])
    is_multiple = all(held[slot] % held[least] == 0 for slot in slots)
    return Group(base if held[base] == held[least] else least, frozenset(slots)) if is_multiple else None


def _related(held: Mapping[Slot, int], base: Slot, found: Sequence[Group]) -> list[tuple[Slot, ...]]:
    """Slots of which one may be the other, or times another; the likeliest first. As a rule a size has one reason: what
    is left of it beside the groups that it is in already tells; and a number that is no argument's size is a factor.
    Last, the arguments' sizes that are known to go together.
    """

    def is_explained(slot: Slot) -> bool:
        left = held[slot] // math.prod(held[group.base] for group in found if slot in group.slots)
        return left % held[base] != 0 and (left == 1 or held[base] % left != 0)

    def unlikely(slots: tuple[Slot, ...]) -> tuple[bool, bool, bool, bool]:
        unequal = any(held[slot] != held[base] for slot in slots)
        return any(map(is_explained, slots)), len(slots) > 1, unequal, any(held[slot] in dims for slot in slots)

    dims = {value for slot, value in held.items() if slot.kind != "number"}
    pairs = ((slot, sorted((held[base], held[slot]))) for slot in held if slot != base)
    single = [slot for slot, (low, high) in pairs if low > 1 and high % low == 0]
    bundles = [tuple(slot for slot in group.slots if slot.kind != "number") for group in found]
    several = [each for each in bundles if len(each) > 1 and {*each} <= {*single}]
    return sorted([*((slot,) for slot in single), *several], key=unlikely)


def _doubled(parts: Parts, slots: Sequence[Slot], dry_run: DryRun) -> tuple[int, bool]:
    held = sizes(parts)
    doubled = resized(parts, {slot: 2 * held[slot] for slot in slots}, 0, 0)
    ran = dry_run.ran(doubled) if doubled is not None else None
    return (ran.steps, ran.is_whole) if ran is not None else (-1, False)


def _resized(argument: Argument, new: Mapping[Slot, int], old: int, size: int) -> Argument | None:
    name = argument.input.name
    if (value := new.get(Slot("argument", name))) is not None:
        return replace(argument, input=replace(argument.input, literal=str(value)))
    if argument.form is None:
        return argument
    shape = tuple(new.get(Slot("dim", name, at), now) for at, now in enumerate(argument.form.shape))
    if shape != argument.form.shape:
        if argument.fill is not None and argument.fill.kind == "inline":
            return None
        argument = argument.with_shape(shape)
    if argument.fill is not None and size < argument.fill.bound <= old:
        argument = replace(argument, fill=replace(argument.fill, bound=size))
    return argument


def largest_first(found: Iterable[Group], parts: Parts) -> list[Group]:
    """The groups by the size that they have now."""
    return sorted(found, key=lambda group: -group.size(parts))
