"""Find the first stage of each frame that computes something else than the stage before it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import replace as replace_in
from functools import partial
from math import inf
from typing import cast

import torch
from msgspec.structs import replace
from torch.fx import GraphModule, Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import fx, stages
from idbg.engine.kerneldiff.float64.mode import NotInFloat64
from idbg.engine.kerneldiff.stages.captured import FrameStages, users_place
from idbg.engine.kerneldiff.stages.chain import (
    FrameInputs,
    NotComparable,
    Stage,
    StageAllowance,
    StageDistance,
    distance,
    inputs_of,
    values_apart,
)
from idbg.engine.kerneldiff.stages.evaluate import GraphResult
from idbg.engine.kerneldiff.stages.fingerprints import forget
from idbg.engine.kerneldiff.stages.first_bad import FirstBad, first_bad
from idbg.engine.kerneldiff.stages.makers import StageTransition, lost_by, maker_of
from idbg.engine.kerneldiff.stages.own_dtypes import (
    ROUNDS_MORE,
    AliasTransition,
    OwnDtypes,
    OwnDtypeTransition,
    RoundingTransition,
    first_moved,
    first_nonfinite,
    first_unlike,
    held_in,
    moved_result,
)
from idbg.engine.kerneldiff.tensors.float64_device import move_to_cpu, peak_memory
from idbg.schema.attribution import STAGES, Maker, StageError, StageName
from idbg.schema.errors import first_line
from idbg.schema.graphs import GraphId, Part
from idbg.schema.graphs import Stage as GraphStage
from idbg.schema.remarks import Remark

LITTLE = 0.02
"""Of what is allowed: where the outputs are wrong and nothing is above what is allowed, what is above this is named."""

ULPS, APPROXIMATED = 2.0, 1e-4
"""A node that is further off than so many ulps of its dtype, and than decompositions approximate, was changed."""

_RAISED = (RuntimeError, TypeError, ValueError, NotImplementedError, LookupError, AttributeError, AssertionError)


@dataclass
class _Frame:
    """One frame's stages, each run once."""

    captured: FrameStages
    share: float
    node_errors: bool = False
    rows: dict[StageName, StageError] = field(default_factory=dict)
    results: dict[StageName, GraphResult] = field(default_factory=dict)
    chain: dict[StageName, Stage] = field(default_factory=dict)

    def judged(self, *, in_own_dtypes: OwnDtypes) -> tuple[StageError, ...]:
        """A row for every stage above the kernels."""
        tensors = [value for value in self.captured.inputs if isinstance(value, torch.Tensor)]
        peak = peak_memory(tensors)
        full = self._judge_within_memory(in_own_dtypes)
        self.results.clear()
        if full and move_to_cpu(tensors, peak):
            self.rows.clear()
            full = self._judge_within_memory(in_own_dtypes)
        if full:
            self._give_up(Remark("error", detail=full))
        return tuple(self.rows[stage] for stage in STAGES[:-1])

    def _judge_within_memory(self, in_own_dtypes: OwnDtypes) -> str:
        """Judge the stages; the message of the device if it has too little memory."""
        try:
            self._begin()
            self._judge_all()
            if in_own_dtypes:
                self._judge_in_own_dtypes(in_own_dtypes)
        except NotComparable as error:
            self._give_up(error.remark)
        except torch.OutOfMemoryError as error:
            return first_line(error)
        except (*_RAISED, NotInFloat64) as error:
            with suppress(*_RAISED, NotComparable):
                self._judge_raised()
            self._give_up(Remark("error", detail=first_line(error)))
        return ""

    def _judge_raised(self) -> None:
        """Where Dynamo's graph raises and the compiled program did not: the first stage that returns a value."""
        self._take_pre_grad()
        before: tuple[StageName, Node, Remark] | None = None
        rows: dict[StageName, StageError] = {}
        for stage in (stage for stage in STAGES[:-1] if stage in self.chain):
            rows[stage] = StageError(stage=stage, frame=self.captured.frame)
            if (raised := self._raised_in(stage)) is not None:
                before = stage, *raised
                continue
            if before is None:  # it raises in float64 alone
                return
            if not any(row.bad for row in rows.values()):
                rows[stage] = self._lost(stage, *before)
                missing = (stage for stage in STAGES[1:-1] if stage not in self.chain)
                self.rows |= {stage: self._unjudged(stage, Remark("not reported")) for stage in missing}
        if any(row.bad for row in rows.values()):
            self.rows |= rows

    def _raised_in(self, stage: StageName) -> tuple[Node, Remark] | None:
        """The node that raises in the program's own dtypes, and what; None if the stage returns a value."""
        ran: set[Node] = set()

        def keep(_: Part, node: Node, value: object) -> None:
            ran.add(node)

        try:
            self.chain[stage].run(self.inputs, exact=False, on_value=keep)
        except _RAISED as error:
            calls = (node for _, node in self.chain[stage].nodes() if node.op.startswith("call"))
            raising = next((node for node in calls if node not in ran), None)
            if raising is None:  # what raises is no call, and no check of the program's
                raise
            return raising, Remark("check lost", detail=first_line(error))
        return None

    def _lost(self, stage: StageName, before: StageName, node: Node, why: Remark) -> StageError:
        """The row of the stage that returns a value where the node of the stage before raises."""
        file, line = users_place(self.captured, *user_line(node.meta.get("stack_trace") or "")[:2])
        made_by = lost_by(self.captured, stage, node)
        return StageError(
            stage=stage,
            frame=self.captured.frame,
            reason=(why,),
            bad=True,
            graph=self._graph_of(before, ""),
            node=self._shown(before, node),
            file=file,
            line=line,
            made_by=made_by,
        )

    def _give_up(self, why: Remark) -> None:
        for stage in STAGES[:-1]:
            self.rows.setdefault(stage, self._unjudged(stage, why))

    def _unjudged(self, stage: StageName, why: Remark) -> StageError:
        return StageError(stage=stage, judged=False, reason=(why,), frame=self.captured.frame)

    def _begin(self) -> None:
        """Run Dynamo's graph in float64 and in the program's own dtypes: all others are compared with it."""
        captured = self.captured
        with captured.as_called():
            traced = stages.traced(captured.dynamo, captured.inputs, {})
        self.inputs: FrameInputs = inputs_of(captured, traced.outputs)
        self.chain = {"dynamo": Stage("dynamo", {"": traced.gm})}
        if captured.own_draws and captured.joint is not None:
            self.chain = {"dynamo": Stage("dynamo", {"": captured.joint})}
        for name, gm in (("joint", captured.joint), ("joint_passes", captured.joint_passes)):
            if gm is not None:
                self.chain[cast("StageName", name)] = Stage(cast("StageName", name), {"": gm})
        frozen = captured.preserved
        self.chain["partitioned"] = Stage("partitioned", self._parts(captured.parts), preserved=frozen)
        lowered = [
            captured.watches[place].graph.gm for place in range(len(captured.parts)) if place in captured.watches
        ]
        if len(lowered) == len(captured.parts):
            self.chain["post_grad"] = Stage("post_grad", self._parts(lowered), self._saved(), frozen)
        self.results["dynamo"] = self.chain["dynamo"].run(self.inputs)
        self.allowed = StageAllowance(self.chain["dynamo"].run(self.inputs, exact=False), self.share)
        reason = _narrowed(self.results["dynamo"])
        self.rows["dynamo"] = StageError(stage="dynamo", reason=reason, error=0.0, frame=self.captured.frame)

    def _parts(self, graphs: Sequence[GraphModule]) -> dict[Part, GraphModule]:
        """Only the forward where the program ran no backward."""
        parts: dict[Part, GraphModule] = {}
        for place, gm in enumerate(graphs):
            watch = self.captured.watches.get(place)
            part: Part = watch.graph.part if watch is not None else ""
            if part != "backward" or self.inputs.tangents:
                parts[part] = gm
        if not parts or ("backward" in parts) != (len(parts) > 1):
            raise NotComparable(Remark("parts unknown"))
        return parts

    def _saved(self) -> tuple[str, ...]:
        """The backward's names of the forward's results as it was partitioned: the backward keeps them."""
        partitioned = self.chain["partitioned"]
        return partitioned.saved_as() if "forward" in partitioned.graphs else ()

    def _judge_all(self) -> None:
        """Judge the last graph, and if it is wrong, those between it and Dynamo's."""
        last: StageName = "post_grad" if "post_grad" in self.chain else "partitioned"
        self._judge(last)
        if self.rows[last].bad:
            self._judge_between()
        is_right = not self.rows[last].bad
        for stage in STAGES[1:-1]:
            why = Remark("as dynamo" if is_right and stage != "post_grad" else "not reported")
            self.rows.setdefault(stage, self._unjudged(stage, why))
        self._against_the_one_before()

    def _judge_between(self) -> None:
        self._take_pre_grad()
        for stage in STAGES[1:-1]:
            if stage in self.chain and stage not in self.results:
                self._judge(stage)

    def _take_pre_grad(self) -> None:
        captured = self.captured
        if captured.pre_grad is not None and "pre_grad" not in self.chain:
            same = stages.structure(captured.pre_grad) == stages.structure(captured.dynamo)
            with captured.as_called():
                gm = None if same else stages.traced(captured.pre_grad, captured.inputs, {}).gm
            self.chain["pre_grad"] = Stage("pre_grad", {"": gm} if gm is not None else self.chain["dynamo"].graphs)

    def _judge(self, stage: StageName) -> None:
        """Compare the stage with Dynamo's graph."""
        made = self._run(stage)
        self._allow_for(made)
        apart = distance(self.results["dynamo"], made, self.allowed)
        self.rows[stage] = self._row(stage, apart)

    def _allow_for(self, made: GraphResult) -> None:
        """A stage is no more exact than what ran in it without float64."""
        kinds = (*made.narrowed.values(), *self.results["dynamo"].narrowed.values())
        narrow = max((torch.finfo(dtype).eps for dtype in kinds), default=0.0)
        self.allowed = replace_in(self.allowed, narrow=max(narrow, self.allowed.narrow))

    def _run(self, stage: StageName) -> GraphResult:
        for other, result in self.results.items():  # what computes the same way is not run again
            if self.chain[other].structure == self.chain[stage].structure:
                self.results[stage] = result
                return result
        self.results[stage] = self.chain[stage].run(self.inputs)
        return self.results[stage]

    def _row(self, stage: StageName, apart: StageDistance) -> StageError:
        at = self._named(apart.at) if apart.error else ""
        reason = _narrowed(self.results[stage])
        return StageError(
            stage=stage, reason=reason, error=apart.error, bad=apart.excess > 1, output=at, frame=self.captured.frame
        )

    def _named(self, at: int | str) -> str:
        if isinstance(at, str):
            return f"{at} (after)"
        nodes = self.chain["dynamo"].output_nodes(self.inputs)
        value = nodes[at][1] if at < len(nodes) else None
        return value.name if isinstance(value, Node) else f"output {at}"

    def _against_the_one_before(self) -> None:
        """A stage is bad if it differs from the stage before, not if that was wrong already."""
        before: StageName = "dynamo"
        explained = False
        for stage in STAGES[1:-1]:
            row = self.rows[stage]
            if not row.judged:
                continue
            if stage != "partitioned" and self.results[stage].draws != self.results[before].draws:
                self.rows[stage] = self._unjudged(stage, Remark("other draws than before"))
                continue
            apart = distance(self.results[before], self.results[stage], self.allowed)
            row = replace(row, added=apart.error, bad=apart.excess > 1)
            self.rows[stage] = self._of_float64(row, before) if row.bad and not explained else row
            explained = explained or row.bad
            before = stage

    def _judge_in_own_dtypes(self, sought: OwnDtypes) -> None:
        """If float64 finds nothing: the first stage that is off in the program's own dtypes."""
        if not self.chain or any(row.bad for row in self.rows.values()):
            return
        before: StageName = "dynamo"
        right = self.allowed.own
        self._take_pre_grad()
        for stage in (stage for stage in STAGES[1:-1] if stage in self.chain):
            made = self.chain[stage].run(self.inputs, exact=False)
            judge = {"nonfinite": self._nonfinite, "alias": self._moved}.get(sought, self._rounded)
            if (row := judge(stage, before, right, made)) is not None:
                self.rows[stage] = row
                for later in STAGES[STAGES.index(stage) + 1 : -1]:
                    if not self.rows[later].judged:
                        self.rows[later] = self._unjudged(later, Remark(f"after {sought}"))  # type: ignore[arg-type]
                return
            if not self.rows[stage].judged:
                self.rows[stage] = StageError(stage=stage, frame=self.captured.frame)
            before, right = stage, made

    def _nonfinite(
        self, stage: StageName, before: StageName, right: GraphResult, made: GraphResult
    ) -> StageError | None:
        """The row of a stage that makes NaN or an infinity where the one before makes none."""
        if (at := first_unlike(right, made)) is None:
            return None
        row = StageError(stage=stage, error=inf, added=inf, bad=True, output=self._named(at), frame=self.captured.frame)
        return self._explained(row, before, partial(first_nonfinite, at=at), partial(OwnDtypeTransition, right=right))

    def _rounded(self, stage: StageName, before: StageName, _: GraphResult, made: GraphResult) -> StageError | None:
        """The row of a stage that rounds by far more than Dynamo's graph, as with a cast to a lower precision."""
        exact = self.results["dynamo"]
        apart = distance(exact, made, self.allowed)
        if apart.excess <= ROUNDS_MORE:
            return None
        row = StageError(
            stage=stage,
            error=apart.error,
            added=apart.error,
            bad=True,
            output=self._named(apart.at),
            frame=self.captured.frame,
        )
        search = partial(first_bad, allowed=self.allowed, exact=False)
        return self._explained(row, before, search, partial(RoundingTransition, right=exact))

    def _moved(self, stage: StageName, before: StageName, right: GraphResult, made: GraphResult) -> StageError | None:
        """The row of a stage that returns a result in another memory than the one before: an argument's, or its own."""
        if (at := first_moved(right, made, self.inputs)) is None:
            return None
        why = Remark("alias lost" if held_in(made.outputs[at], self.inputs) is None else "alias made")
        row = StageError(
            stage=stage,
            reason=(why,),
            error=0.0,
            added=0.0,
            bad=True,
            output=self._named(at),
            frame=self.captured.frame,
        )
        return self._explained(row, before, partial(moved_result, at=at), partial(AliasTransition, right=right))

    def _of_float64(self, row: StageError, before: StageName) -> StageError:
        search = partial(first_bad, allowed=self.allowed)
        return self._explained(row, before, search, partial(StageTransition, right=self.results[before]))

    def _explained(
        self,
        row: StageError,
        before: StageName,
        search: Callable[[Stage, Stage, FrameInputs], FirstBad],
        step: Callable[..., StageTransition],
    ) -> StageError:
        """The first bad stage, with its first bad node and what made it, or the reason why that is not known."""
        above, below = self.chain[before], self.chain[row.stage]
        bad, reasons = FirstBad(None, "", None, ""), list[Remark]()
        try:
            bad = search(above, below, self.inputs)
        except (*_RAISED, NotInFloat64) as error:
            reasons.append(Remark("node unknown", detail=first_line(error)))
        file, line = users_place(self.captured, *user_line(_trace(bad))[:2])
        maker: Maker | None = None
        node_error = self._node_error(above, below, bad) if self.node_errors else None
        try:
            maker = maker_of(
                step(frame=self.captured, to=row.stage, above=above, bad=bad, inputs=self.inputs, allowed=self.allowed)
            )
        except (*_RAISED, NotInFloat64) as error:
            reasons.append(Remark("maker unknown", detail=first_line(error)))
        return replace(
            row,
            reason=(*(row.reason if isinstance(row.reason, tuple) else ()), *reasons),
            part=bad.part,
            graph=self._graph_of(row.stage, bad.part),
            node=self._shown(row.stage, bad.node),
            above_graph=self._graph_of(before, bad.above_part),
            above=self._shown(before, bad.above),
            file=file,
            line=line,
            made_by=maker,
            node_error=node_error,
            changed=self.node_errors and _is_change(row, maker, node_error, bad.above),
        )

    def _node_error(self, above: Stage, below: Stage, bad: FirstBad) -> float | None:
        """The error of the bad node's value relative to its counterpart's."""
        if bad.node is None or bad.above is None:
            return None
        values: dict[Node, object] = {}

        def keep(_: Part, node: Node, value: object) -> None:
            if node in (bad.node, bad.above):
                values[node] = value

        above.run(self.inputs, on_value=keep)
        below.run(self.inputs, on_value=keep)
        return values_apart(values.get(bad.above), values.get(bad.node))

    def _graph_of(self, stage: StageName, part: Part) -> GraphId | None:
        """The graph of the run that shows a node of this stage."""
        if stage in ("dynamo", "pre_grad"):
            return GraphId(self.captured.frame, "dynamo")
        if stage == "post_grad":
            return GraphId(self.captured.frame, "post_grad", part)
        if stage in ("joint", "joint_passes"):
            return GraphId(self.captured.frame, "joint" if len(self.captured.parts) > 1 else "inference")
        return GraphId(self.captured.frame, cast("GraphStage", part)) if part else None

    def _shown(self, stage: StageName, node: Node | None) -> str:
        """The node's name in that graph: what was traced of Dynamo's graph is shown as the node it was traced from."""
        if node is None:
            return ""
        if stage not in ("dynamo", "pre_grad"):
            return node.name
        return min(self._origins(node), default=node.name)

    def _origins(self, node: Node) -> set[str]:
        """The Dynamo nodes that it was traced from; of a backward's node, those that it differentiates."""
        same = (other for other in node.graph.nodes if other.meta.get("seq_nr") == node.meta.get("seq_nr", -1))
        return fx.origins(node) or {name for other in same for name in fx.origins(other)}


def _is_change(row: StageError, maker: Maker | None, node_error: float | None, node: Node | None) -> bool:
    """Whether the stage is proven to compute something else, and that by far more than its dtype rounds."""
    if maker is None or not maker.proven:
        return False
    error = node_error if node_error is not None else row.added or 0.0
    value, least = node.meta.get("val") if node is not None else None, APPROXIMATED
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        least = max(least, ULPS * torch.finfo(value.dtype).eps)
    return least < error < inf


def _narrowed(made: GraphResult) -> tuple[Remark, ...]:
    """The ops that ran in the program's own dtypes, as they have no float64."""
    named = sorted(made.narrowed.items(), key=lambda each: each[0])
    return tuple(Remark("narrow", name, str(kind).removeprefix("torch.")) for name, kind in named)


def _trace(bad: FirstBad) -> str:
    nodes = (node for node in (bad.above, bad.node) if node is not None)
    return next((trace for node in nodes if (trace := node.meta.get("stack_trace"))), "")


def stage_table(
    frames: Sequence[FrameStages],
    *,
    bad_launch: str = "",
    share: float = 1.0,
    node_errors: bool = False,
    in_own_dtypes: OwnDtypes = "",
    hidden: Callable[[Remark], None] = lambda _: None,
) -> tuple[StageError, ...]:
    """A row for each stage above the kernels: those of the first frame with a bad one, else each stage's worst.

    `bad_launch`: the frame of a bad launch, whose rows they are if no stage is bad. `share`: the share of the rounding
    that is allowed. `node_errors`: also measure the error of the first bad node. `in_own_dtypes`: what makes a stage
    bad if none is wrong in float64. `hidden` is called for each frame that could not be judged and has no row.
    """
    tables = [_Frame(frame, share, node_errors).judged(in_own_dtypes=in_own_dtypes) for frame in frames]
    forget()
    shown = next((rows for rows in tables if any(row.bad for row in rows)), None) or _merged(tables, bad_launch)
    frames_shown = {row.frame for row in shown if not row.judged}
    for rows in tables:
        unknown, *_, last = list(_unknown_first(rows))[-1]
        if unknown and last.frame not in frames_shown:
            hidden(Remark("stages not judged", last.frame, last.reason))
    return shown


def _merged(tables: Sequence[tuple[StageError, ...]], bad_launch: str) -> tuple[StageError, ...]:
    """Each stage's worst row, of the frame with a bad launch if there is one; what is not known is the worst."""
    of_launch = [rows for rows in tables if rows[0].frame == bad_launch]
    ranked = (_unknown_first(rows) for rows in of_launch or tables)
    worst = [max(each, key=lambda ranked: ranked[:3]) for each in zip(*ranked, strict=True)]
    merged = [row for *_, row in worst]
    for at in reversed(range(len(merged) - 1)):
        unknown, judged, _, row = worst[at]
        if not unknown and not judged:  # right in all frames, as what comes of it: the row below vouches for it
            merged[at] = replace(row, frame=merged[at + 1].frame)
    return tuple(merged)


def _unknown_first(rows: Sequence[StageError]) -> Iterator[tuple[bool, bool, float, StageError]]:
    """A frame's rows with what ranks them: nothing is known of those below the last judged one."""
    last = max((at for at, row in enumerate(rows) if row.judged), default=-1)
    return ((at > last, row.judged, row.error or 0.0, row) for at, row in enumerate(rows))


def called_frames(frames: Sequence[FrameStages]) -> Iterator[FrameStages]:
    """The frames whose code was called, in the order of their first calls."""
    known = [(min((w.called for w in frame.watches.values() if w.called), default=0), frame) for frame in frames]
    yield from (frame for order, frame in sorted(known, key=lambda each: each[0]) if order)
