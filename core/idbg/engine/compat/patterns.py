"""Which patterns does Inductor's pattern matcher apply, each to which nodes?

Run on torch 2.14 and 2.15 (CPU).
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class AppliedPattern:
    """`function` is what the pattern was registered with: its handler or its replacement, None where that is not known.
    `nodes`: the names of the nodes that it was applied to.
    """

    function: object
    nodes: frozenset[str]


@contextmanager
def patterns_heard(told: Callable[[AppliedPattern], None]) -> Iterator[None]:
    """While it lasts, each pattern is told of as it is applied."""
    from torch._inductor import pattern_matcher

    def telling(original: Callable[..., None]) -> Callable[..., None]:
        def apply(entry: Any, match: Any, graph: Any, node: Any) -> None:
            told(AppliedPattern(_function(entry), frozenset(each.name for each in match.nodes)))
            original(entry, match, graph, node)

        return apply

    with ExitStack() as stack:
        for name in ("GraphPatternEntry", "LoweringPatternEntry", "ReplacementPatternEntry"):
            kind = getattr(pattern_matcher, name)
            stack.enter_context(patch.object(kind, "apply", telling(kind.apply)))
        yield


def _function(entry: Any) -> object:
    if (handler := getattr(entry, "handler", None)) is not None:
        return handler
    check = entry.extra_check  # of a replacement: a closure of register_replacement's
    return inspect.getclosurevars(check).nonlocals.get("replace_fn") if inspect.isfunction(check) else None
