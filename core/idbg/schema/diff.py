"""Records of a numerical comparison of a run with a reference.

Errors are `test - reference`. A figure that was not measured is None. Nothing here imports torch.
"""

import sys
from collections.abc import Iterable
from math import inf, isfinite
from typing import Literal

import msgspec

from idbg.schema.attribution import KernelAttribution, StageError
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import GraphId, Part, TensorMeta
from idbg.schema.html_repr import html_of
from idbg.schema.programs import Failure
from idbg.schema.remarks import NoFloat64, Remark, RemarkKind
from idbg.schema.steps import TrainingSteps


class TransferFloor(msgspec.Struct, frozen=True, kw_only=True):
    """What numbers of one dtype become that are sent from the CPU to a device and back: `changed` of the `values`, some
    of them the program's own, come back with other bits. No comparison on the CPU can be more exact.

    Of those changed, `subnormals` were smaller than the dtype's smallest normal number, `nans` are NaN still.
    `max_rel`: the largest |d| / |value| of normal numbers; infinite where one is no number after it.
    """

    device: str
    dtype: str
    values: int
    changed: int = 0
    subnormals: int = 0
    nans: int = 0
    max_rel: float = 0.0


class Float64Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """Float64 was computed on the CPU and not on the program's device `device`; `why` is the end of a sentence."""

    device: str
    why: str
    floors: tuple[TransferFloor, ...] = ()


Value = bool | int | float | str
"""One element; what JSON has no number for is text: "nan", "inf", "-inf", "(1+2j)"."""

FailedBy = Literal[
    "missing",  # the test side has no such output
    "extra",  # the reference has no such output
    "type",  # a tensor on one side and something else on the other, or unequal non-tensors
    "shape",
    "dtype",
    "nan",  # NaN on one side only
    "inf",  # an infinity on one side only, or of the other sign
    "exact",  # integers and booleans that differ
    "tolerance",  # |d| > atol + rtol * |reference| (in more places than are allowed)
    "rmse",  # the four below: worse than eager, both held against float64
    "maximum",
    "row",
    "column",
    "tile",
    "layout",  # strided on one side, sparse on the other
    "class",  # a subclass of torch.Tensor on one side
    "device",
    "alias",  # a view of an input or of state on one side, a copy on the other
    "requires_grad",  # the reference's output can be differentiated, the test's cannot
    "effect",  # the program's Python state is left otherwise
    "warnings",  # the program's own code warns more often, or less
    "draws",  # right with eager's random operators, and proven wrong with Inductor's own
    "unsteady",  # eager itself gives something else each time
]
SideEffect = Literal["effect", "warnings"]
SIDE_EFFECTS: frozenset[FailedBy] = frozenset({"effect", "warnings"})
Mode = Literal["float64", "rounding", "tolerance"]
"""What decides: the distance from float64, how far rounding moves eager, or plain tolerances."""

Outcome = Literal["passed", "failed", "error", "empty", "waiting"]

DECADES = tuple(range(-20, 11))
"""Exponents of the histogram: bin 0 counts equal elements, bin 1 those below 1e-20, bin i+2 |d| in [10**DECADES[i],
10**DECADES[i+1]), and the last one those at or above 1e10, finite or not (NaN on one side included)."""


LARGEST = sys.float_info.max
"""Stands for an error that no float can say: JSON has no infinity."""

EAGER, FLOAT64 = "eager", "float64"
SIDE_SECONDS = 600.0
K = 3.0  # how many times eager's error an output may have: engine/kerneldiff/tensors/allowance.py says why


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run is to be held against, and how.

    `reference` is "eager", "float64", a backend's name, or the folder of a session whose outputs were kept. With `atol`
    or `rtol` the verdict is by tolerance, else by float64 with factor `k`. `backward` compares gradients also where the
    program has no loss. `runs` above 1 measures how the test side varies. A side that takes longer than `seconds` is
    stopped. `sync`: the device is waited for after each launch, so that its errors are reported at the launch that made
    them. `nan`: where NaN and infinities are born is searched for, also where the numbers agree; the kernels are then
    observed. `steps`: both sides train for so many, in lockstep with float64.
    """

    reference: str = EAGER
    per_kernel: bool = False
    backward: bool = False
    runs: int = 1
    atol: float | None = None
    rtol: float | None = None
    k: float = K
    seconds: float = SIDE_SECONDS
    sync: bool = False
    nan: bool = False
    steps: int = 0

    @property
    def by_tolerance(self) -> bool:
        """Whether plain tolerances decide, and no float64 side runs."""
        return self.atol is not None or self.rtol is not None


class Worst(msgspec.Struct, frozen=True):
    """The element with the largest absolute error (of a one-sided NaN or infinity first, if there is one)."""

    index: tuple[int, ...]
    reference: Value
    test: Value


class Counts(msgspec.Struct, frozen=True):
    """Of NaN, +Inf or -Inf: how many on each side, and in how many places only one side has it."""

    reference: int = 0
    test: int = 0
    disagree: int = 0


class Block(msgspec.Struct, frozen=True):
    """The worst block of its kind, over the tensor seen as a matrix (leading dims flattened, last dim = columns).

    Ends are exclusive. `ratio` is its RMSE over what was allowed: above 1 fails; None where nothing was (no float64).
    """

    kind: Literal["row", "column", "tile"]
    rows: tuple[int, int]
    columns: tuple[int, int]
    rmse: float
    ratio: float | None = None


class Baseline(msgspec.Struct, frozen=True):
    """Both sides held against float64: the test's RMSE and largest absolute error, and the reference's."""

    rmse: float
    max_abs: float
    reference_rmse: float = msgspec.field(name="eager_rmse")
    reference_max_abs: float = msgspec.field(name="eager_max_abs")


class Term(msgspec.Struct, frozen=True):
    """One part of what a criterion allows. `factor`: of eager's own error, or of the size of the values, how much."""

    what: Literal["eager", "few", "rounding", "values"]
    amount: float
    factor: float | None = None


class Criterion(msgspec.Struct, frozen=True):
    """One rule that a tensor was held to, and the sum that it allows: `measured` above `allowed` fails by it.

    Of "tolerance" and "exact" both are numbers of elements, else errors. One that does not decide says `why_not`.
    """

    by: FailedBy
    measured: float
    allowed: float
    terms: tuple[Term, ...] = ()
    why_not: Remark | str = ""

    @property
    def exceeded(self) -> bool:
        """Whether more was measured than is allowed; what is no number is more than anything."""
        return not self.measured <= self.allowed  # what is no number is not within anything

    @property
    def share(self) -> float:
        """What was measured over what is allowed."""
        if self.measured == 0:
            return 0.0
        return self.measured / self.allowed if self.allowed else inf


class FormDiff(msgspec.Struct, frozen=True):
    """One thing in which the sides' forms differ; whether the output fails by it. `views.remarks` makes the sentence:
    `said` has it in older sessions alone.

    `side` is the name of the reference; `reference` and `test` have the layouts or the strides, of an alias what the
    output shares memory with: an input or state where it fails by it, another output where it does not; "" for nothing.
    """

    kind: Literal["class", "device", "layout", "stride", "requires_grad", "alias"]
    said: str = ""
    failed: bool = False
    side: str = ""
    reference: str = ""
    test: str = ""


class TensorDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """One tensor of the test side held against its counterpart.

    `max_rel`, `mean_rel`: |d| / max(|reference|, floor), floor = the dtype's smallest normal number. `max_scaled` is
    the largest |d| / (atol + rtol * |reference|): above 1 is a mismatch. `relative_rmse` is the RMSE over the RMS of
    float64, or of the reference where float64 was not computed; None where that is zero. `cosine` is of both tensors as
    vectors, None where one is zero or not finite. No relative figure is of values that are zero but for rounding.
    `max_ulp` is in units of the tensors' dtype; None for integers. Means, RMSE, cosine and blocks are over the elements
    that are finite on both sides. `blocks` holds the worst row, column and tile block.
    What is not `judged` has neither passed nor failed: the other side gave nothing (yet), or float64 has not run yet.
    `criteria` are the rules by whose sums it passed or failed, and those that were looked at and do not decide. `form`
    is what differs beside the numbers.
    """

    name: str = ""
    passed: bool = True
    judged: bool = True
    failed_by: tuple[FailedBy, ...] = ()
    reference: TensorMeta | None = None
    test: TensorMeta | None = None
    elements: int = 0
    max_abs: float | None = None
    mean_abs: float | None = None
    max_rel: float | None = None
    mean_rel: float | None = None
    max_scaled: float | None = None
    rmse: float | None = None
    relative_rmse: float | None = None
    cosine: float | None = None
    mismatches: int | None = None
    mismatch_percent: float | None = None
    worst: Worst | None = None
    nan: Counts | None = None
    posinf: Counts | None = None
    neginf: Counts | None = None
    max_ulp: int | None = None
    histogram: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()
    atol: float | None = None
    rtol: float | None = None
    baseline: Baseline | None = None
    criteria: tuple[Criterion, ...] = ()
    form: tuple[FormDiff, ...] = ()
    note: tuple[Remark, ...] | Remark | str = ""

    @property
    def is_side_effect(self) -> bool:
        """Whether it is no tensor, but something that the sides leave otherwise."""
        return not SIDE_EFFECTS.isdisjoint(self.failed_by)

    @property
    def is_tensor(self) -> bool:
        """Whether it is an output or a gradient."""
        return not self.is_side_effect and "draws" not in self.failed_by

    @property
    def failed(self) -> bool:
        """Whether it was judged, and did not pass."""
        return self.judged and not self.passed


class NodeError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one launch left of one post-grad node in a buffer: relative RMSEs, None where they could not be computed.

    `isolated`: against float64 of what the launch was really given, the error that it adds by itself;
    `isolated_eager`: of the node computed op by op, from the same. `error` and `eager_error`: against float64 of what
    the graph was given, with the error of all that came before.
    """

    node: str
    buffer: str
    isolated: float | None = None
    isolated_eager: float | None = None
    error: float | None = None
    eager_error: float | None = None
    bad: bool = False


Unit = Literal["kernel", "layer", "dispatch"]
"""What a compiler executes at a time: a kernel of Inductor's, a layer of OpenVINO's, a dispatch of IREE's."""


class KernelError(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a kernel: the relative RMSE (RMSE / RMS of the reference, or of eager's value where the reference
    is zero but for rounding) of its worst output, in float64's eyes.

    `isolated` is its own: against float64 of what the launch was really given, by which it is judged; `isolated_eager`
    that of the same nodes computed op by op in the program's own dtype, from the same. `error` is against float64 of
    what the graph was given, with the error of all that came before; `input_error` is the worst of its inputs' then,
    `eager_error` that of the same nodes in eager. `outputs` has these of each output that was seen, but for the
    `outputs_left_out` that are least wrong of very many. `graph` is the post-grad graph that `nodes` are of; `file` and
    `line` are the user's, `wrapper_line` is 1-based in the output code of (`frame`, `part`). Where it was not observed,
    `reason` says why. A `harmless` one is worse than what it was given, in a run whose outputs agree all the same: it
    is not accused. A layer or a dispatch of another compiler (`unit`) has the nodes of Dynamo's graph, and no figures
    of its own: it was not launched alone.
    """

    frame: str
    part: Part
    name: str
    handle: str = ""
    wrapper_line: int = 0
    graph: GraphId | None = None
    nodes: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    observed: bool = False
    reason: Remark | str = ""
    error: float | None = None
    input_error: float | None = None
    eager_error: float | None = None
    bad: bool = False
    harmless: bool = False
    buffer: str = ""  # the worst output's name in the wrapper
    node: str = ""  # and the post-grad node that it holds
    diff: TensorDiff | None = None  # of the worst output
    isolated: float | None = None
    isolated_eager: float | None = None
    outputs: tuple[NodeError, ...] = ()
    outputs_left_out: int = 0
    unit: Unit = "kernel"

    @property
    def bisected(self) -> bool:
        """Whether it is a node, which was bisected: that search looks at graphs above the kernels, or of no kernels."""
        return self.graph is not None and self.graph.stage != "post_grad" and not self.is_foreign

    @property
    def is_foreign(self) -> bool:
        """Whether another compiler executes it, as a layer or a dispatch."""
        return self.unit != "kernel"

    @property
    def is_launch(self) -> bool:
        """Whether it is a launch of Inductor's code, which can be read and called alone."""
        return not self.bisected and not self.is_foreign


def launch_name(one: KernelError, among: Iterable[KernelError]) -> str:
    """The kernel's name; where others of these launches have it too, with Inductor's handle of this one."""
    return one.handle or one.name if sum(other.name == one.name for other in among) > 1 else one.name


class SideResult(msgspec.Struct, frozen=True):
    """One side of the comparison: how it went, in seconds of wall time (with compiling). `raised`: its failure is an
    exception of what ran, and not of a compile.
    """

    name: str  # "inductor", "eager", "float64"
    seconds: float | None = None
    failure: Failure | None = None
    raised: bool = False


class Variance(msgspec.Struct, frozen=True):
    """How one output of the test side differs between runs with the same inputs and state."""

    name: str
    runs: int
    max_abs: float
    differing: int  # elements that were not the same in every run

    @property
    def deterministic(self) -> bool:
        """Whether every run gave the same, bit by bit."""
        return self.differing == 0


class ErrorMap(msgspec.Struct, frozen=True):
    """The error over one slice of an output: its last two dims, with `index` in the dims before.

    Each of `cells`, rows of columns, is the largest |d| of a block of the slice's `shape`; LARGEST where NaN or an
    infinity is on one side only. A tensor of one dim is one row.
    """

    name: str
    index: tuple[int, ...]
    shape: tuple[int, int]
    cells: tuple[tuple[float, ...], ...]


_UNJUDGED: dict[RemarkKind, str] = {
    "random as eager": "random operators",
    "not observed": "kernels",
    "partly observed": "some kernels",
    "layers not judged": "layers",
    "stages not judged": "some stages",
    "search failed": "nodes",
    "effects not judged": "some side effects",
    "nan search ended": "the origin of NaN",
    "later call not judged": "some later calls",
}
"""What a comparison did not judge, by the note that says why."""

Numbers = Literal["agree", "wrong", "not comparable", "not compared"]
"""What a comparison found of a run."""


class DiffReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run held against a reference. `float64_missing`: why there was no float64 side, "" where there was one.
    `views.remarks` makes sentences of that and of `notes`; sessions of older versions have the sentences.

    `verdict` is "error" where a side failed or was stopped: what the other gave is still here; "empty" where the
    numbers agree because nothing was compiled; "waiting" while a side has not run, also where the run was cancelled,
    and where both have and cannot be compared: `not_comparable` then says why.
    `float64_elsewhere`: where it was not computed on the program's device, why, and what the way there costs; None
    where it was. `first_bad_kernel` indexes `kernels`. `failure` is why the program did not come to its end; what it
    had compared by then stands.
    """

    test: str
    reference: str
    verdict: Outcome
    mode: Mode
    float64_missing: NoFloat64 | str = msgspec.field(default="", name="float64")
    outputs: tuple[TensorDiff, ...] = ()
    gradients: tuple[TensorDiff, ...] = ()
    kernels: tuple[KernelError, ...] = ()
    first_bad_kernel: int | None = None
    stages: tuple[StageError, ...] = ()  # in the order in which they are made; empty where none was requested
    stages_of: str = ""  # whose the stages are, of the functions that a script compiles; "" of a program that is one
    sides: tuple[SideResult, ...] = ()
    variance: tuple[Variance, ...] = ()
    notes: tuple[Remark | str, ...] = ()
    failure: Failure | None = None
    births: tuple[NanOrigin, ...] | None = None  # in the order in which they appear; None where nobody searched
    owners: tuple[KernelAttribution, ...] = ()  # of the launches that were attributed, in the order of `kernels`
    steps: TrainingSteps | None = None  # None where no training was requested
    float64_elsewhere: Float64Elsewhere | None = None
    not_comparable: Remark | str = ""

    def __post_init__(self) -> None:
        """A graph that is wrong below one that was not judged is a bound, and names no node and no maker: whoever reads
        the report finds none there.
        """
        off = (one for one in self.stages if one.stage != "kernels" and (one.bad or one.harmless))
        bounds = {id(one) for one in off if self.unknown_before(one)}
        if bounds:
            stages = tuple(one.as_bound() if id(one) in bounds else one for one in self.stages)
            msgspec.structs.force_setattr(self, "stages", stages)

    @property
    def culprit(self) -> KernelError | None:
        """The first launch that is accused; None where none is."""
        return None if self.first_bad_kernel is None else self.kernels[self.first_bad_kernel]

    def owner_of(self, launch: int) -> KernelAttribution | None:
        """The attribution of this launch of `kernels`; None where there is none."""
        return next((owner for owner in self.owners if owner.launch == launch), None)

    def with_owner(self, owner: KernelAttribution) -> "DiffReport":
        """The report with this verdict, in the place of an older one of the same launch."""
        others = [other for other in self.owners if other.launch != owner.launch]
        return msgspec.structs.replace(self, owners=tuple(sorted((*others, owner), key=lambda one: one.launch)))

    @property
    def first_wrong_stage(self) -> StageError | None:
        """The first stage that is off against the one before; None where none is (known to be)."""
        return next((stage for stage in self.stages if stage.bad), None)

    @property
    def unknown_stages(self) -> tuple[StageError, ...]:
        """The stages of which nothing is known: not judged, below a wrong one or with no right one next below."""
        unknown = []
        for at, stage in enumerate(self.stages):
            same = [one for one in self.stages[at + 1 :] if one.frame == stage.frame and one.stage != "kernels"]
            judged = next((one for one in same if one.judged), None)
            is_below_wrong = any(one.bad and one.frame == stage.frame for one in self.stages[:at])
            if not stage.judged and (judged is None or judged.bad or judged.harmless or is_below_wrong):
                unknown.append(stage)
        return tuple(unknown)

    def unknown_before(self, stage: StageError) -> tuple[StageError, ...]:
        """Those of them above a stage of its frame. While there are any, it is not accused: they may be wrong."""
        places = {id(one): at for at, one in enumerate(self.stages)}
        unknown = (one for one in self.unknown_stages if one.frame == stage.frame)
        return tuple(one for one in unknown if places[id(one)] < places[id(stage)])

    @property
    def raises_alone(self) -> SideResult | None:
        """The side that raises where the other returns a value; None where both do the same, or it is not known."""
        ended = self.sides[:2]
        raised = [side for side in ended if side.failure is not None]
        alone = len(ended) == 2 and len(raised) == 1 and raised[0].raised
        return raised[0] if self.verdict == "error" and alone else None

    @property
    def only_eager_varies(self) -> bool:
        """Whether nothing fails but what eager itself computes otherwise each time: nothing is to blame for that."""
        return self._fails_by_only(frozenset({"unsteady"}))

    def _fails_by_only(self, rules: frozenset[FailedBy]) -> bool:
        found = [each.failed_by for each in (*self.outputs, *self.gradients) if each.failed_by]
        return bool(found) and all(rules.issuperset(each) for each in found)

    @property
    def only_effects_differ(self) -> bool:
        """Whether nothing fails but what the program leaves in Python's objects: no stage of numbers is to blame."""
        return self._fails_by_only(SIDE_EFFECTS)

    @property
    def only_draws_fail(self) -> bool:
        """Whether nothing fails but what is computed with Inductor's own random operators: the stages are of those."""
        return self._fails_by_only(frozenset({"draws"}))

    @property
    def tensors_agree(self) -> bool:
        """Whether what fails is no tensor, or varies in eager itself: no kernel is to blame."""
        return self._fails_by_only(SIDE_EFFECTS.union(("unsteady", "draws")))

    @property
    def changed_stage(self) -> StageError | None:
        """Of a run that passed, the first stage that is proven to compute something else than the one before, though
        the outputs are within rounding; None where none is.
        """
        return next((stage for stage in self.stages if stage.changed and self.passed), None)

    @property
    def passed(self) -> bool:
        """Whether both sides ran and every number agrees."""
        return self.verdict == "passed"

    @property
    def not_judged(self) -> str:
        """What no verdict covers: "random operators, some stages"; "" where nothing is missing."""
        kinds = (note.kind for note in self.notes if isinstance(note, Remark))
        return ", ".join(dict.fromkeys(_UNJUDGED[kind] for kind in kinds if kind in _UNJUDGED))

    def _repr_html_(self) -> str | None:
        return html_of(self)


def sayable(report: DiffReport) -> DiffReport:
    """The report with every infinity as LARGEST, as it goes through JSON."""
    return msgspec.convert(_sayable(msgspec.to_builtins(report)), DiffReport)


def _sayable(value: object) -> object:
    if isinstance(value, float) and not isfinite(value):
        return LARGEST
    if isinstance(value, dict):
        return {key: _sayable(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(held) for held in value]
    return value
