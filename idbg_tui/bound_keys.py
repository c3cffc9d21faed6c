"""The keys that panes and widgets bind, as data: for the help and docs/keys.md."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from textual.binding import Binding
from textual.dom import DOMNode

MOVES = {
    *("up", "down", "j", "k", "g", "G", "home", "end"),
    *("pageup", "pagedown", "ctrl+d", "ctrl+u", "ctrl+f", "ctrl+b"),
}
"""They move the cursor, wherever rows or lines are."""


@dataclass(frozen=True)
class BoundKey:
    """A key, what a widget does at it, and the words for that."""

    key: str
    action: str
    words: str


@dataclass(frozen=True)
class Offer:
    """What can be done in a widget: the keys, the action of the `node` that has it, and the words."""

    keys: list[str]
    action: str
    words: str
    node: DOMNode


def of_class(kind: type) -> Iterator[BoundKey]:
    """The keys that a class binds itself: not those of the classes above it."""
    for binding in vars(kind).get("BINDINGS", ()):
        assert isinstance(binding, Binding)
        for key in binding.key.split(","):
            yield BoundKey(key, binding.action, binding.description)


def of_widget(kind: type) -> Iterator[BoundKey]:
    """The keys of a kind of widget, as far as they are ours: a class's own before those of the classes above it."""
    for each in kind.__mro__:
        if each.__module__.startswith("idbg_tui."):
            yield from of_class(each)


def of_chain(nodes: Iterable[DOMNode]) -> list[Offer]:
    """What keys do in a widget and all around it, from the inside out.

    Of a key that several bind, the innermost counts. The keys of the outermost come first: they are a pane's own.
    """
    chain = list(nodes)
    first: dict[str, BoundKey] = {}
    for node in chain:
        for bound in of_widget(type(node)):
            first.setdefault(bound.key, bound)
    listed: dict[str, Offer] = {}
    for node in reversed(chain):
        for bound in of_widget(type(node)):
            if first[bound.key] == bound:
                offer = listed.setdefault(bound.words, Offer([], bound.action, bound.words, node))
                if bound.key not in offer.keys:
                    offer.keys.append(bound.key)
    return list(listed.values())
