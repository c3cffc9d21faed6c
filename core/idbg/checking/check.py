"""Check a program's graphs against accelerators: accepted, at a cost, or rejected."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from msgspec.structs import replace as with_fields

from idbg.accelerators import registry
from idbg.accelerators.lint import RuleWarning, warnings
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.partition import Partitions
from idbg.checking import costs
from idbg.checking.costs import Better, Waste
from idbg.checking.relax import Relaxation, relaxations
from idbg.constraints import Checker, Constraint, Findings
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import Graph, Stage
from idbg.schema.programs import NO_ACCELERATOR, Failure, Target
from idbg.schema.runs import Run
from idbg.schema.violations import Severity, marked

Treatment = Literal["accept", "pad", "fallback", "reject"]
TREATMENTS: tuple[Treatment, ...] = ("accept", "pad", "fallback", "reject")  # best first
FIXABLE: tuple[Severity, ...] = ("reject", "fallback", "pad")  # what keeps an accelerator from taking it as it is


class CheckLevel(NamedTuple):
    """Which graphs a check is of, and the cheapest backend that a program must go through to have them."""

    backend: str
    stages: tuple[Stage, ...]


LEVELS = {
    "aten": CheckLevel("mock", ("forward", "backward", "inference")),
    "dynamo": CheckLevel("eager", ("dynamo",)),
    "post_grad": CheckLevel("inductor", ("post_grad",)),
}


class NamedAccelerator(NamedTuple):
    """An accelerator, what the user calls it (a preset's name or a path), and what is odd in its rules."""

    name: str
    accelerator: Accelerator
    warnings: tuple[RuleWarning, ...]


@dataclass(frozen=True)
class AcceleratorResult:
    """What one accelerator says of all the graphs."""

    name: str
    accelerator: Accelerator
    findings: tuple[Findings, ...]
    level: str

    @cached_property
    def by_severity(self) -> Counter[Severity]:
        """Severity -> number of violations."""
        counts: Counter[Severity] = Counter()
        for findings in self.findings:
            counts.update(findings.by_severity)
        return counts

    @property
    def verdict(self) -> Treatment:
        """The worst that happens to any node. What is tiled, slow or unknown is taken all the same."""
        return next(
            (answer for answer in reversed(TREATMENTS) if answer != "accept" and self.by_severity[answer]), "accept"
        )

    @property
    def inapplicable_rules(self) -> list[Constraint]:
        """The rules that are about graphs of other levels only."""
        stages = set(LEVELS[self.level].stages)
        return [
            rule for rule in self.accelerator.rules if rule.enabled and rule.stages and stages.isdisjoint(rule.stages)
        ]

    @cached_property
    def waste(self) -> Waste:
        return sum(map(costs.waste, self.findings), Waste())

    @cached_property
    def partitions(self) -> tuple[Partitions, ...]:
        """The partitions of each graph, in the order of the graphs."""
        return tuple(map(costs.partitions, self.findings))

    @property
    def cost(self) -> tuple[int, int]:
        """Partitions of all graphs, and bytes that cross their boundaries."""
        return sum(each.count for each in self.partitions), sum(each.bytes for each in self.partitions)

    @cached_property
    def best_changes(self) -> list[Better]:
        """What would leave fewer partitions, made in all graphs at once: see `costs.best_changes`."""
        return costs.best_changes(self.findings, self.partitions)

    @property
    def best_change(self) -> Better | None:
        """The first of `best_changes`; None if no change leaves less."""
        return next(iter(self.best_changes), None)

    def relaxations(self, *severities: Severity) -> list[Relaxation]:
        """The smallest change of each rule of these severities that all graphs pass."""
        return relaxations(self.findings, severities)


@dataclass(frozen=True)
class Check:
    """One run's graphs of one level, and what each accelerator says of them; nobody says anything of no graphs."""

    run: Run
    level: str
    graphs: tuple[Graph, ...]
    accelerators: tuple[AcceleratorResult, ...]

    @property
    def accepted(self) -> list[AcceleratorResult]:
        return [checked for checked in self.accelerators if checked.verdict != "reject"]

    @property
    def failure(self) -> Failure | None:
        """Why graphs are missing, if they are."""
        if self.run.failure is not None or self.graphs:
            return self.run.failure
        message = f"{self.run.program.label} ran, but no {self.level} graph was captured: there is nothing to check"
        return Failure("input", message, hint="compile something that computes with tensors")

    @property
    def peak_bytes(self) -> int | None:
        """The most bytes alive at once in any graph, weights counted; tensors of unknown size are left out."""
        return max((profile.peak_bytes for profile in self._profiles), default=None)

    @property
    def unsized(self) -> int:
        """The tensors of unknown size."""
        return sum(profile.unsized for profile in self._profiles)

    @property
    def _profiles(self) -> list[MemoryProfile]:
        of_graphs = self.accelerators[0].findings if self.accelerators else ()
        return [findings.facts.profile(weights=True) for findings in of_graphs]


def target(level: str, *, device: str = "", dynamic: bool | None = None) -> Target:
    """What a program is run for once, so that its graphs can be checked: no rules are in force."""
    return Target(backend=LEVELS[level].backend, device=device, dynamic=dynamic, accelerator=NO_ACCELERATOR)


def named(names: Iterable[str]) -> list[NamedAccelerator]:
    """These accelerators, each once. Raises AcceleratorError, with the file and line, or SettingsError."""
    by_place: dict[str, NamedAccelerator] = {}
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise AcceleratorError(f"the name {name!r} is not UTF-8", hint="rename the file") from error
        text, path = rules_for(Target(accelerator=name))
        by_place.setdefault(str(path.resolve()) if path else name, NamedAccelerator(name, parse(text), warnings(text)))
    return list(by_place.values())


def presets() -> tuple[list[NamedAccelerator], dict[str, str]]:
    """Every preset, and those (of other packages) that cannot be used, with why."""
    good: list[NamedAccelerator] = []
    broken: dict[str, str] = {}
    for name in registry.names():
        try:
            good += named([name])
        except AcceleratorError as error:
            broken[name] = error.message
    return good, broken


def lowered(run: Run, level: str) -> tuple[Graph, ...]:
    """The run's graphs of one level."""
    return tuple(graph for graph in run.graphs.values() if graph.id.stage in LEVELS[level].stages)


def check(run: Run, level: str, accelerators: Sequence[NamedAccelerator], *, best_first: bool = False) -> Check:
    """Hold what was captured against each of the accelerators."""
    graphs = lowered(run, level)
    if not graphs:
        return Check(run, level, (), ())
    checkers = [Checker(graph) for graph in graphs]
    results = [
        AcceleratorResult(name, rules, tuple(checker.check(rules.rules) for checker in checkers), level)
        for name, rules, _ in accelerators
    ]
    if best_first:
        results.sort(key=lambda checked: (TREATMENTS.index(checked.verdict), checked.by_severity.total()))
    return Check(run, level, graphs, tuple(results))


def unreadable(run: Run) -> str:
    """Why the rules of the run cannot be read here, "" where they can: a session may come from a machine with other
    plug-ins, whose kinds of rules are not installed here.
    """
    try:
        parse(run.target.rules)
    except AcceleratorError as error:
        return f"its rules cannot be read here: {error.message}"
    return ""


def check_own_rules(run: Run) -> Check:
    """What the accelerator that the run was for says of its ATen graphs. Raises AcceleratorError for rules that cannot
    be read (`unreadable`).
    """
    return check(run, "aten", [NamedAccelerator(run.target.accelerator, parse(run.target.rules), ())])


def of_run(run: Run) -> Check | None:
    """The same; None of a run that broke none of its rules, or whose rules cannot be read here."""
    return check_own_rules(run) if run.violations and not unreadable(run) else None


ONLY_PRINTED: tuple[Stage, ...] = ("joint", "post_grad")  # no backend of ours is handed these graphs


def rules_for_stage(stage: Stage, rules: Sequence[Constraint]) -> Sequence[Constraint]:
    """The rules that a graph of this stage is held against as it is compiled.

    A backend is given Dynamo's and ATen's graphs. Those that torch only prints on the way are held against the rules
    that name their stage, and no others, which would find the same again.
    """
    return [rule for rule in rules if stage in rule.stages] if stage in ONLY_PRINTED else rules


def can_recheck(run: Run) -> bool:
    """Whether the run can be checked against other rules: its backend checks rules, and none of these stopped it."""
    return run.checked and bool(run.graphs) and not run.stopped and not run.target.strict


def recheck(run: Run, rules: str) -> Run:
    """The run as it would be, had these rules (TOML) been in force. Raises AcceleratorError for no valid rules."""
    accelerator = parse(rules)
    violations = [
        violation
        for graph in run.graphs.values()
        for violation in Checker(graph).check(rules_for_stage(graph.id.stage, accelerator.rules)).violations()
    ]
    ended = "clean" if run.ended == "violations" else run.ended
    return replace(
        run, target=with_fields(run.target, rules=rules), violations=marked(violations, run.links), ended=ended
    )
