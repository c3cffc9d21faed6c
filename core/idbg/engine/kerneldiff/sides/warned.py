"""Record the warnings that the program's own code issues in one run, as side effects of it."""

import linecache
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from idbg.engine.failures.owners import is_own
from idbg.engine.kerneldiff.sides.python_state import Effect, Effects, text_of

_WARNS = re.compile(r"\bwarn\w*\(")  # "warnings.warn(", "warn_once("


@contextmanager
def warnings_recorded(effects: dict[str, Effect], shown: set[str]) -> Iterator[None]:
    """Add to the effects how often each warning is issued by a line of the program; after that, those are shown that
    are not among the `shown`.

    The program's filters hold. What they show once for each line is shown anew, as for a program that begins.
    """
    try:
        with warnings.catch_warnings(record=True) as found:
            yield
    finally:
        effects.update(_effects(found or []))
        for each in found or []:
            text = warnings.formatwarning(each.message, each.category, each.filename, each.lineno)
            if text not in shown:
                shown.add(text)
                warnings.showwarning(each.message, each.category, each.filename, each.lineno)


def _effects(found: list[warnings.WarningMessage]) -> Effects:
    """One effect for each text. What torch issues in the name of a line of the program is not the program's."""
    own = [
        each for each in found if is_own(each.filename) and _WARNS.search(linecache.getline(each.filename, each.lineno))
    ]
    texts = Counter(f"{each.category.__name__}: {text_of(str(each.message)).compared}" for each in own)
    return {text: Effect(text_of(0), text_of(number), "warnings") for text, number in texts.items()}
