"""Suggest the known word that a misspelled one is nearest to."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches


def did_you_mean(
    word: str,
    known: Iterable[str],
    otherwise: str = "",
    *,
    form: Callable[[str], str] = str,
    most: int = 1,
    cutoff: float = 0.6,
) -> str:
    """A question that names the nearest known words, as `form` writes them; `otherwise` where none is near."""
    near = get_close_matches(word, list(dict.fromkeys(known)), most, cutoff)
    return f"did you mean {' or '.join(map(form, near))}?" if near else otherwise
