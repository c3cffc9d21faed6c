"""What is said of the other stages beside the one that is shown, so that no part is taken for the whole?"""

from idbg.format.glyphs import MARKS
from idbg.schema.violations import Severity
from idbg_tui.state import queries
from idbg_tui.state.state import State

_SAID: dict[Severity, str] = {
    "reject": "rejected",
    "fallback": "on the host",
    "pad": "padded",
    "tile": "tiled",
    "slow": "slow",
    "unknown": "unknown",
}


def elsewhere(state: State) -> str:
    """ "dynamo: 17 rejected, 2 padded"; "" where no other stage breaks a rule."""
    dot = f" {MARKS['separator']} "
    return dot.join(
        f"{level}: {', '.join(f'{count:,} {_SAID[severity]}' for severity, count in counts.items())}"
        for level, counts in queries.counts_of_other_levels(state)
    )
