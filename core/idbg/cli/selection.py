"""Find the violation or the node of a run that the command line names."""

import argparse

from idbg.format.amounts import counted
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput
from idbg.schema.graphs import NodeId
from idbg.schema.runs import Run
from idbg.schema.violations import SEVERITIES, Violation


def names_violation(args: argparse.Namespace) -> bool:
    """Whether --violation, --rule or --node is there."""
    return args.violation is not None or bool(args.rule or args.node)


def violation(run: Run, args: argparse.Namespace) -> Violation:
    """The violation that --violation (its number from 1), --rule and --node name: the severest of those that fit.

    Raises BadInput where there is none.
    """
    if not run.violations:
        raise BadInput(
            "the run breaks no rule, so there is no violation to reproduce",
            hint="choose other rules (--accelerator), or a backend that checks them (--backend aot or mock)",
        )
    if args.violation is not None:
        return _numbered(run, args.violation)
    found = [each for each in run.violations if args.rule in ("", each.rule) and is_at(each.node, args.node)]
    if not found:
        raise _none(run, args.rule, args.node)
    return min(found, key=lambda each: SEVERITIES.index(each.severity))


def number_of(run: Run, chosen: Violation) -> int:
    """Its number among the run's violations, from 1."""
    return run.violations.index(chosen) + 1


def node(run: Run, name: str) -> NodeId:
    """The node NAME, or STAGE:NAME, in the first graph that has it. Raises BadInput where none has."""
    for graph in run.graphs.values():
        for each in graph.nodes:
            if is_at(found := NodeId(graph.id, each.name), name):
                return found
    names = [each.name for graph in run.graphs.values() for each in graph.nodes]
    hint = did_you_mean(name.rpartition(":")[2], names, "idbg-tui shows the graphs and their nodes")
    raise BadInput(f"no graph of the run has a node {name!r}", hint=hint)


def is_at(found: NodeId, name: str) -> bool:
    """Whether NAME, or STAGE:NAME, names this node; "" names every node."""
    stage, _, bare = name.rpartition(":")
    return not name or (found.name == bare and stage in ("", found.graph.stage))


def _numbered(run: Run, number: int) -> Violation:
    if not 1 <= number <= len(run.violations):
        known = counted(len(run.violations), "violation")
        raise BadInput(f"there is no violation {number}: the run has {known}", hint="numbers begin at 1: see --list")
    return run.violations[number - 1]


def _none(run: Run, rule: str, node: str) -> BadInput:
    rules = list(dict.fromkeys(each.rule for each in run.violations))
    if rule and rule not in rules:
        hint = did_you_mean(rule, rules, f"it breaks {', '.join(rules)}")
        return BadInput(f"the run breaks no rule called {rule!r}", hint=hint)
    broken = f" {rule}" if rule else " any rule"
    nodes = dict.fromkeys(each.node.name for each in run.violations if rule in ("", each.rule))
    hint = f"these do: {', '.join(list(nodes)[:8])}{', ...' * (len(nodes) > 8)}"
    return BadInput(f"the node {node!r} does not break{broken}", hint=hint)
