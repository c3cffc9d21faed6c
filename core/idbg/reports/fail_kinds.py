"""The names that `--fail-on` takes, and the findings that each stands for.

Read with every command line: it imports next to nothing.
"""

from collections.abc import Iterable

from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput
from idbg.schema.violations import SEVERITIES

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "failure": ("something fails, or nothing is compiled", ("failure",)),
    "mismatch": ("an output or gradient differs", ("mismatch",)),
    "change": ("a stage changes the numbers, within rounding", ("change",)),
    "rank": ("a rank stops, or another differs from it", ("rank",)),
    "violation": ("a rule is broken", SEVERITIES),
    "reject": ("the accelerator rejects an op", ("reject",)),
    "fallback": ("that, or an op falls back", ("reject", "fallback")),
    "pad": ("that, or an op is padded", ("reject", "fallback", "pad")),
    "break": ("a graph break", ("break",)),
    "recompile": ("a frame is compiled again", ("recompile",)),
}
"""In words, and as `baseline.kind_of` calls diagnostics."""

OF_A_RUN = ("failure", "violation", "reject", "fallback", "pad", "break", "recompile")
OF_A_COMPARISON = ("mismatch", "change", *OF_A_RUN)


def findings_of(names: Iterable[str]) -> frozenset[str]:
    """The findings that these names stand for. Raises BadInput for a name that is none."""
    found: set[str] = set()
    for name in names:
        if name not in KINDS:
            hint = did_you_mean(name, KINDS, f"there are: {', '.join(KINDS)}")
            raise BadInput(f"there is nothing called {name!r} to fail on", hint=hint)
        found.update(KINDS[name][1])
    return frozenset(found)
