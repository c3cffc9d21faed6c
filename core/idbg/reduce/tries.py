"""What came of each candidate, and may another be tried?"""

from typing import Literal

Outcome = Literal["same", "passes", "other"]
"""It fails as what is looked for; it does not fail; it fails otherwise (or is no program at all)."""


class Stopped(Exception):
    """The search ends before it is through; says why, in words: a budget, or the user."""
