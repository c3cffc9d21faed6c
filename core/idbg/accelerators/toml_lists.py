"""Add and remove strings in a TOML list; its lines and comments stay."""

import tomllib
from collections.abc import Sequence

from idbg.accelerators import toml_text


def with_items(spelled: str, wanted: Sequence[str]) -> str | None:
    """The list that is spelled so, with these strings in it: only what comes and goes is touched. None where it is no
    list of strings."""
    tokens = toml_text.tokens(spelled)
    if tokens[0] != "[" or "[" in tokens[1:] or not all(token[0] in "\"'#[], \t\n" for token in tokens):
        return None
    strings = [at for at, token in enumerate(tokens) if token[0] in "\"'"]
    more = list(wanted)
    gone = []
    for at in strings:
        if more and tomllib.loads(f"item = {tokens[at]}")["item"] == more[0]:
            del more[0]
        else:
            gone.append(at)
    for at in reversed(gone):
        _cut(tokens, at)
    if more:
        _append(tokens, toml_text.spelled(more)[1:-1])
    return "".join(tokens)


def _cut(tokens: list[str], at: int) -> None:
    """Take an item out of a list, with the comma that is its own, and its line if nothing else stands there."""
    before, after = _next(tokens, at, -1), _next(tokens, at, 1)
    start, end = at, at + 1
    if tokens[after] == ",":
        end = _next(tokens, after, 1)
    elif tokens[before] == ",":
        start = _next(tokens, before, -1) + 1
    else:  # its comma, if it has one, stands on a line below
        comma = next((place for place in range(after, len(tokens)) if tokens[place][0] in "\"',"), at)
        if tokens[comma] == ",":
            del tokens[comma]
    before = _next(tokens, start, -1)
    after = _next(tokens, end - 1, 1)
    if tokens[before] == tokens[after] == "\n":
        start, end = before, after
    del tokens[start:end]


def _next(tokens: list[str], at: int, step: int) -> int:
    """The nearest token before (step -1) or after (1) one that is not blank; the list's brackets end the search."""
    at += step
    while not tokens[at].strip(" \t"):
        at += step
    return at


def _append(tokens: list[str], more: str) -> None:
    """Add items at the end of a list: on a line of their own if its bracket stands on one."""
    last = max((at for at, token in enumerate(tokens) if token[0] in "\"'"), default=0)
    if last and "," not in tokens[last:]:
        tokens.insert(last + 1, ",")
    end = len(tokens) - 1
    while not tokens[end - 1].strip():
        end -= 1
    own_line = "\n" in tokens[end:]
    tokens[end:] = ["\n    ", more, ",\n]"] if own_line else [" " if last else "", more, "]"]
