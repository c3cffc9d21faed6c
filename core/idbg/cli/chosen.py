"""Which violation, or which node, of a run did the user name?"""

from difflib import get_close_matches

from idbg.format.amounts import counted
from idbg.schema.errors import BadInput
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES, Violation


def violation(run: Run, number: int | None = None, rule: str = "", node: str = "") -> Violation:
    """The run's violation of this number (from 1, as `idbg repro SESSION --list` has them), or the severest of `rule`,
    at `node`; the severest of all where nothing is named. Raises BadInput where there is none.
    """
    if not run.violations:
        raise BadInput(
            "the run breaks no rule, so it has no violation to show again",
            hint="choose other rules (--accelerator), or a backend that asks them (--backend aot or mock)",
        )
    if number is not None:
        return _numbered(run, number)
    found = [each for each in run.violations if (not rule or each.rule == rule) and is_at(each.node, node)]
    if not found:
        raise _none(run, rule, node)
    return min(found, key=lambda each: SEVERITIES.index(each.severity))


def number_of(run: Run, chosen: Violation) -> int:
    """Its number among the run's, from 1."""
    return next(at for at, each in enumerate(run.violations, 1) if each == chosen)


def node(run: Run, name: str) -> NodeId:
    """The node of this name (NAME, or STAGE:NAME), in the first graph that has it. Raises BadInput where none has."""
    for graph in run.graphs.values():
        for each in graph.nodes:
            if is_at(found := NodeId(graph.id, each.name), name):
                return found
    names = [each.name for graph in run.graphs.values() for each in graph.nodes]
    near = get_close_matches(name.rpartition(":")[2], dict.fromkeys(names), 1)
    hint = f"did you mean {near[0]}?" if near else "idbg-tui shows the graphs and their nodes"
    raise BadInput(f"no graph of the run has a node {name!r}", hint=hint)


def is_at(found: NodeId, name: str) -> bool:
    stage, _, bare = name.rpartition(":")
    return not name or (found.name == bare and stage in ("", found.graph.stage))


def _numbered(run: Run, number: int) -> Violation:
    if not 1 <= number <= len(run.violations):
        there = counted(len(run.violations), "violation")
        raise BadInput(f"there is no violation {number}: the run has {there}", hint="their numbers begin at 1: --list")
    return run.violations[number - 1]


def _none(run: Run, rule: str, node: str) -> BadInput:
    rules = list(dict.fromkeys(each.rule for each in run.violations))
    if rule and rule not in rules:
        near = get_close_matches(rule, rules, 1)
        hint = f"did you mean {near[0]}?" if near else f"it breaks {', '.join(rules)}"
        return BadInput(f"the run breaks no rule called {rule!r}", hint=hint)
    broken = f" {rule}" if rule else " any rule"
    nodes = dict.fromkeys(each.node.name for each in run.violations if rule in ("", each.rule))
    hint = f"there are: {', '.join(list(nodes)[:8])}{', ...' * (len(nodes) > 8)}"
    return BadInput(f"the node {node!r} does not break{broken}", hint=hint)
