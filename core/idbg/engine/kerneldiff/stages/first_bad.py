"""Find the first node of a wrong stage whose value differs from the stage before it.

Values are compared with those of the stage before by their fingerprints. A value of the stage above that no node below
has is lost. The first lost value on the way to a wrong result is where the error begins, and the node that computes it
below is the first bad node. Of several candidates the one is taken that, given its right value, makes the results
right.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice

import numpy as np
from torch.fx import Node

from idbg.engine.compat import comparing, fx, stages
from idbg.engine.kerneldiff.stages.chain import FrameInputs, Stage, StageAllowance, distance
from idbg.engine.kerneldiff.stages.fingerprints import SAME, Fingerprint, fingerprint
from idbg.schema.graphs import Part

Key = tuple[Part, str]
_TRIED = 4  # candidates of either kind, whose values are replaced, to see whether that makes the results right
_BETTER = 10.0  # times nearer: then it was this node


@dataclass(frozen=True)
class FirstBad:
    """A node of the wrong stage (None if nothing there corresponds to it), and that of the stage before."""

    node: Node | None
    part: Part
    above: Node | None
    above_part: Part


class StageValues:
    """The fingerprints of a stage's nodes, in float64 or (not `exact`) in the program's own dtypes."""

    def __init__(self, stage: Stage, inputs: FrameInputs, *, exact: bool = True) -> None:
        self.stage = stage
        self.run = partial(stage.run, inputs, exact=exact)
        self.nodes: dict[Key, Node] = {(part, node.name): node for part, node in stage.nodes()}
        self.prints: dict[Key, Fingerprint] = {}
        self.result = self.run(on_value=self._note)

    def _note(self, part: Part, node: Node, value: object) -> None:
        if (made := fingerprint(value)) is not None:
            self.prints[part, node.name] = made

    @cached_property
    def _places(self) -> dict[int, int]:
        """Autograd's sequence numbers renumbered from 0: each trace starts at another number."""
        nodes = (node for node in self.nodes.values() if node.op != "placeholder")
        numbers = {number for node in nodes if isinstance(number := node.meta.get("seq_nr"), int)}
        return {number: place for place, number in enumerate(sorted(numbers))}

    def op(self, key: Key) -> tuple[int, str] | None:
        """The sequence number and name of the op that the node is, or was decomposed from; None if not known."""
        place = self._places.get(self.nodes[key].meta.get("seq_nr", -1))
        name = stages.original_op(self.nodes[key])
        return (place, name) if place is not None and name else None

    def origins(self, key: Key) -> set[str]:
        """The Dynamo nodes that it was traced from; of a backward's node, those that it differentiates."""
        return fx.origins(self.nodes[key]) or self._traced.get(self.nodes[key].meta.get("seq_nr", -1), set())

    @cached_property
    def _traced(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for node in self.nodes.values():
            found.setdefault(node.meta.get("seq_nr", -1), set()).update(fx.origins(node))
        return found

    @cached_property
    def _by_size(self) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], list[Fingerprint]]:
        ordered = sorted(self.prints.values(), key=lambda one: one.size)
        return np.array([one.size for one in ordered]), ordered

    def has(self, sought: Fingerprint) -> bool:
        """Whether some node has this value."""
        sizes, ordered = self._by_size
        low = int(np.searchsorted(sizes, sought.size * (1 - SAME), "left"))
        high = int(np.searchsorted(sizes, sought.size * (1 + SAME), "right"))
        return any(one.same(sought) for one in ordered[low:high])

    def sources(self, key: Key) -> Iterator[Key]:
        """The nodes that it is computed from; for an argument of the backward, the forward's of that name."""
        part, name = key
        node = self.nodes[key]
        if node.op == "placeholder":
            held = self.stage.saved_node(name) if part == "backward" and "forward" in self.stage.graphs else ""
            if held and self.nodes["forward", held].op != "placeholder":
                yield "forward", held
            return
        yield from ((part, source.name) for source in node.all_input_nodes)

    def upstream(self, start: Key, is_end: Callable[[Key], bool] = lambda _: False) -> Iterator[Key]:
        """`start`, and what it is computed from; the walk ends at, and leaves out, the nodes of which `is_end`
        is true.
        """
        seen: set[Key] = set()
        waiting = [start]
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            if not is_end(key):
                yield key
                waiting += self.sources(key)


def first_bad(
    above: Stage, below: Stage, inputs: FrameInputs, allowed: StageAllowance, *, exact: bool = True
) -> FirstBad:
    """The first bad node of `below`, in float64 or (not `exact`) in the program's own dtypes. Raises what running a
    stage raises.
    """
    right, wrong = (StageValues(stage, inputs, exact=exact) for stage in (above, below))
    at = distance(right.result, wrong.result, allowed).first
    start = result_key(right, inputs, at)
    other_start = result_key(wrong, inputs, at)
    if start is None or other_start is None:
        return _of_result(below, inputs, at, right.nodes[start] if start else None, start[0] if start else "")
    if right.prints.get(start) is not None and wrong.has(right.prints[start]) and right.has(wrong.prints[other_start]):
        return _of_result(
            below, inputs, at, right.nodes[start], start[0]
        )  # both values exist: the stage returns another node
    if (drawn := _drawn_again(right, wrong, other_start)) is not None:
        return drawn
    kinds = (_lost_pairs(right, wrong, start), _foreign_pairs(right, wrong, other_start))
    order = {key: place for place, key in enumerate(right.nodes)}  # a node that comes later repairs all above it too
    candidates = dict.fromkeys(pair for pairs in kinds for pair in islice(pairs, _TRIED))
    pairs = sorted(candidates, key=lambda pair: order[pair[0]])
    if pairs:
        key, other = _repairing(right, wrong, allowed, pairs) or pairs[0]
        return FirstBad(wrong.nodes[other], other[0], right.nodes[key], key[0])
    foreign = _roots(wrong, _unmatched(wrong, right, other_start))
    lost = _roots(right, _unmatched(right, wrong, start))
    node, part = (wrong.nodes[foreign[0]], foreign[0][0]) if foreign else (None, start[0])
    return FirstBad(node, part, right.nodes[lost[0]] if lost else None, lost[0][0] if lost else part)


def _drawn_again(right: StageValues, wrong: StageValues, start: Key) -> FirstBad | None:
    """A node upstream of a wrong result that draws random numbers which the stage above does not have."""
    for key in _roots(wrong, _unmatched(wrong, right, start)):
        node = wrong.nodes[key]
        if comparing.is_random(node):
            same = (each for each in right.nodes if each[1] == node.name or right.op(each) == wrong.op(key))
            above = next(same, None)
            return FirstBad(node, key[0], right.nodes[above] if above else None, above[0] if above else "")
    return None


def _lost_pairs(right: StageValues, wrong: StageValues, start: Key) -> Iterator[tuple[Key, Key]]:
    """Nodes of the stage above whose values the stage below does not have, in order, each with its counterpart
    below.
    """
    lost = _unmatched(right, wrong, start)
    first = _roots(right, lost)
    for key in (*first, *(key for key in right.nodes if key in lost and key not in first)):
        for other, is_whole in _below(right, wrong, key):
            if is_whole or all(_is_known(right, wrong, each) for each in wrong.sources(other)):
                yield key, other


def _foreign_pairs(right: StageValues, wrong: StageValues, start: Key) -> Iterator[tuple[Key, Key]]:
    """Nodes of the stage below with right inputs whose values the stage above does not have, each with its
    counterpart above: a decomposition may compute the right value and use another.
    """
    foreign = _unmatched(wrong, right, start)
    for root in _roots(wrong, foreign):
        node = wrong.nodes[root]
        group = [key for key in wrong.nodes if key in foreign and wrong.op(key) == wrong.op(root) is not None] or [root]
        for key, other in right.nodes.items():
            same = right.op(key) == wrong.op(root) is not None or other.name == node.name
            same = same and key in right.prints and _may_correspond(right, key, wrong, root)
            if same and right.prints[key].fits(wrong.prints[group[-1]]):
                yield key, group[-1]


def result_key(values: StageValues, inputs: FrameInputs, at: int | str) -> Key | None:
    """The node whose value is this result: by place, or what is copied to the argument of this name."""
    if isinstance(at, int):
        results = values.stage.output_nodes(inputs)
        part, value = results[at] if at < len(results) else ("", None)
        return (part, value.name) if isinstance(value, Node) else None
    for key, node in values.nodes.items():
        target = node.args[0] if node.op == "call_function" and node.args else None
        if isinstance(target, Node) and target.name == at and fx.returns_written(node.target):
            source = node.args[1] if len(node.args) > 1 else None
            is_copy = fx.op_name(node.target) == "copy_"
            return (key[0], source.name) if is_copy and isinstance(source, Node) else key
    return None


def _of_result(below: Stage, inputs: FrameInputs, at: int | str, above: Node | None, part: Part) -> FirstBad:
    """The stage returns another node, or none: what it returns in the result's place is the first bad node."""
    results = below.output_nodes(inputs)
    result = results[at] if isinstance(at, int) and at < len(results) else None
    node = result[1] if result is not None and isinstance(result[1], Node) else None
    return FirstBad(node, result[0] if result is not None else part, above, part)


def _unmatched(of: StageValues, among: StageValues, start: Key) -> set[Key]:
    """The nodes upstream of a result whose values the other stage does not have."""

    def is_known(key: Key) -> bool:
        return key != start and key in of.prints and among.has(of.prints[key])

    return {key for key in of.upstream(start, is_known) if key in of.prints}


def _roots(values: StageValues, unmatched: set[Key]) -> list[Key]:
    """Those computed from no other unmatched node, also by way of a tuple, in order."""
    return [key for key in values.nodes if key in unmatched and not _before(values, key, unmatched)]


def _before(values: StageValues, key: Key, unmatched: set[Key]) -> bool:
    waiting = list(values.sources(key))
    while waiting:
        source = waiting.pop()
        if source in unmatched:
            return True
        if source not in values.prints:
            waiting += values.sources(source)
    return False


def _is_known(right: StageValues, wrong: StageValues, key: Key) -> bool:
    """Whether an input of a node below is right: the stage above has its value."""
    made = wrong.prints.get(key)
    if made is not None:
        return right.has(made)
    return all(_is_known(right, wrong, source) for source in wrong.sources(key))


def _below(right: StageValues, wrong: StageValues, key: Key) -> Iterator[tuple[Key, bool]]:
    """The counterparts of a node in the stage below that have another value: the node of its name; the one that
    replaced it; the last one of its op's decomposition (`True`: it stands for the whole decomposition). If
    there are none: another op of the same Dynamo node; what the same user takes in its place.
    """
    node, made = right.nodes[key], right.prints[key]

    def differs(at: Key) -> bool:
        other = wrong.prints.get(at)
        return other is not None and other.fits(made) and not other.same(made)

    akin = {at: other for at, other in wrong.nodes.items() if _may_correspond(right, key, wrong, at)}
    named = [at for at, other in akin.items() if at[1] == key[1] or node.name in _replaces(other)]
    stand_ins = [(at, False) for at in named if differs(at)]
    group = [at for at in akin if wrong.op(at) == right.op(key) is not None and differs(at)]
    stand_ins += [(at, True) for at in group[-1:]]
    if not stand_ins and (names := fx.origins(node)):
        traced = (at for at, other in wrong.nodes.items() if fx.origins(other) & names)
        stand_ins = [(at, False) for at in traced if differs(at)]
    yield from stand_ins or [(at, True) for at in _taken_instead(wrong, key[0], node) if differs(at)]


def _may_correspond(right: StageValues, key: Key, wrong: StageValues, other: Key) -> bool:
    """False if both are known to come from different Dynamo nodes: a node that a pass inserts takes others' names."""
    own, others = right.origins(key), wrong.origins(other)
    return not (own and others and own.isdisjoint(others))


def _taken_instead(wrong: StageValues, part: Part, node: Node) -> Iterator[Key]:
    """What users of the node that the stage below also has take there in its place."""
    for user in node.users:
        other = wrong.nodes.get((part, user.name))
        if other is None or other.target != user.target or len(other.all_input_nodes) != len(user.all_input_nodes):
            continue
        pairs = zip(user.all_input_nodes, other.all_input_nodes, strict=True)
        yield from ((part, taken.name) for source, taken in pairs if source is node)


def _replaces(node: Node) -> set[str]:
    """The nodes that a pass replaced by this one."""
    return {str(source.name) for source in node.meta.get("from_node") or [] if fx.is_replacement(source)}


def _repairing(
    right: StageValues,
    wrong: StageValues,
    allowed: StageAllowance,
    pairs: Sequence[tuple[Key, Key]],
) -> tuple[Key, Key] | None:
    """The first pair whose node below makes the results right, once it has the value of the node above; or one before
    it that was changed too, and without which they are still off: what comes after may hide most of that.
    """
    wanted = {key for key, _ in pairs}
    held: dict[Key, object] = {}

    def keep(part: Part, node: Node, value: object) -> None:
        if (part, node.name) in wanted:
            held[part, node.name] = value

    right.run(on_value=keep)
    before = distance(right.result, wrong.result, allowed)
    for at, (key, other) in enumerate(pairs):
        after = distance(right.result, wrong.run(instead={other: held[key]}), allowed)
        if after.excess <= 1 or after.error * _BETTER < before.error:
            for first, changed in pairs[:at]:
                if _is_changed(right, wrong, first, changed):
                    both = wrong.run(instead={other: held[key], changed: held[first]})
                    if distance(right.result, both, allowed).error * _BETTER < after.error:
                        return first, changed
            return key, other
    return None


def _is_changed(right: StageValues, wrong: StageValues, key: Key, other: Key) -> bool:
    """Whether the same node has right inputs in the stage below, and another value."""
    same = key[1] == other[1] and right.nodes[key].target == wrong.nodes[other].target
    return same and all(_is_known(right, wrong, source) for source in wrong.sources(other))
