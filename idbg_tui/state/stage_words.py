"""What is to be said of the other stages beside the one that is shown, so that no part is taken for the whole?"""

from idbg.accelerators.parse import parse
from idbg.format.glyphs import MARKS
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import Graph
from idbg.schema.runs import Run
from idbg.schema.violations import Severity
from idbg_tui.state import stages
from idbg_tui.state.queries import Known
from idbg_tui.state.rule_checks import totals

_SAID: dict[Severity, str] = {
    "reject": "rejected",
    "fallback": "on the host",
    "pad": "padded",
    "tile": "tiled",
    "slow": "slow",
    "unknown": "unknown",
}


def levels_elsewhere(state: Known) -> list[tuple[str, dict[Severity, int]]]:
    """Each other level of stages that breaks a rule in force: its name, and how many violations of each severity."""
    here = {graph.id for graph in state.level}
    found = []
    for of_level in stages.LEVELS:
        graphs = [graph for graph in _graphs(state) if graph.id.stage in of_level and graph.id not in here]
        counts = totals([state.findings(graph) for graph in graphs])
        if counts:
            found.append((stages.names_of(graphs), counts))
    return found


def _graphs(state: Known) -> list[Graph]:
    return list(state.shown.graphs.values()) if state.shown is not None and state.accelerator is not None else []


def elsewhere(state: Known) -> str:
    """ "dynamo: 17 rejected, 2 padded"; "" where no other stage breaks a rule."""
    dot = f" {MARKS['separator']} "
    return dot.join(
        f"{level}: {', '.join(f'{count:,} {_SAID[severity]}' for severity, count in counts.items())}"
        for level, counts in levels_elsewhere(state)
    )


def is_clean(state: Known) -> bool:
    """Whether green may be shown: no stage breaks a rule, and nothing else is known to be wrong, or not known."""
    run = state.run
    if run is None or not state.level or state.accelerator is None or state.counts:
        return False
    fine = run.verdict == "clean" or (
        run.verdict == "violations" and run.failure is None and has_other_rules(state, run)
    )
    return fine and not levels_elsewhere(state)


def has_other_rules(state: Known, run: Run) -> bool:
    """Whether the rules were edited since the run: its own verdict is then of the rules before."""
    if not run.target.rules or state.accelerator is None:
        return False
    try:
        return parse(run.target.rules) != state.accelerator
    except AcceleratorError:
        return True
