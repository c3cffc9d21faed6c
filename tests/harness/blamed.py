"""Comparisons as blame by stage leaves them: wrong since a pass, since a kernel, and what is not known."""

from pathlib import Path

from msgspec.structs import replace

from idbg.config.settings import Settings
from idbg.schema import event_log, events
from idbg.schema.attribution import STAGES, Maker, StageError, StageName
from idbg.schema.diff import DiffReport, KernelError, TensorDiff
from idbg.schema.graphs import GraphId, TensorMeta
from idbg.session.session import Session
from idbg_tui.app import IdbgApp
from tests.harness import compared
from tests.harness.recorded import log
from tests.harness.screen import ReadyApp

FRAME = "0/0"
POST_GRAD = GraphId(FRAME, "post_grad", "inference")
META = TensorMeta("float32", (4, 8), (8, 1), "cpu")
WRONG = TensorDiff(
    name="out", passed=False, failed_by=("rmse",), reference=META, test=META, elements=32, max_abs=0.01, rmse=0.005
)
DIFF = """--- before
+++ after
@@ -1,3 +1,3 @@
 %arg0_1 : [num_users=1] = placeholder[target=arg0_1]
-%mul_2 : [num_users=1] = call_function[target=aten.mul.Tensor](args = (%erf, 0.5), kwargs = {})
+%mul_3 : [num_users=1] = call_function[target=aten.mul.Tensor](args = (%erf, 0.5003), kwargs = {})
 return (mul_2,)
"""
PASS = Maker(
    kind="pass",
    name="post_grad_custom_post_pass",
    file="plant.py",
    line=9,
    proven="without it the outputs are right",
    diff=DIFF,
)
GUILTY = StageError(
    stage="post_grad",
    error=3e-4,
    added=3e-4,
    bad=True,
    output="mul_3",
    frame=FRAME,
    part="inference",
    graph=POST_GRAD,
    node="mul_3",
    above_graph=GraphId(FRAME, "inference"),
    above="mul_2",
    file="plant.py",
    line=21,
    made_by=PASS,
)
FAITHFUL = tuple(
    KernelError(
        frame=FRAME,
        part="inference",
        name=f"cpp_fused_{number}",
        graph=POST_GRAD,
        nodes=(f"mul_{number}",),
        file="plant.py",
        line=20 + number,
        observed=True,
        error=1e-7,
        input_error=1e-7,
    )
    for number in range(3)
)
KERNEL = replace(FAITHFUL[1], bad=True, error=0.2)


def stage(name: StageName, **known: object) -> StageError:
    """A stage that is right, but for what is `known`."""
    right = StageError(stage=name, error=1e-16, added=None if name == "dynamo" else 1e-16, frame=FRAME)
    return replace(right, **known)


def stages(*others: StageError) -> tuple[StageError, ...]:
    """All stages of one frame: these, and those between them as right ones."""
    return tuple(next((one for one in others if one.stage == name), stage(name)) for name in STAGES)


def unjudged(name: StageName, reason: str) -> StageError:
    """A stage of which nothing is known."""
    return StageError(stage=name, judged=False, reason=reason, frame=FRAME)


def report(*others: StageError, kernels: tuple[KernelError, ...] = FAITHFUL, **known: object) -> DiffReport:
    """A comparison that fails, with these stages among right ones."""
    bad = next((at for at, kernel in enumerate(kernels) if kernel.bad), None)
    failed = DiffReport(
        test="inductor",
        reference="eager",
        verdict="failed",
        mode="float64",
        outputs=(WRONG,),
        kernels=kernels,
        first_bad_kernel=bad,
        stages=stages(*others),
    )
    return replace(failed, **known)


def by_a_pass() -> DiffReport:
    """What the issue tells of: wrong since post-grad, made by a pass; the kernels are faithful."""
    return report(GUILTY, stage("kernels", error=3e-4, added=1e-7))


def by_a_kernel() -> DiffReport:
    """Every graph is right, and one kernel is wrong."""
    wrong = stage("kernels", error=0.2, added=0.2, bad=True, node="mul_1", graph=POST_GRAD, file="plant.py", line=21)
    return report(wrong, kernels=(FAITHFUL[0], KERNEL, FAITHFUL[2]))


def by_a_backend() -> DiffReport:
    """What a backend that has no kernels leaves: Dynamo's graph, and a node of it that was bisected."""
    graph = GraphId(FRAME, "dynamo")
    node = replace(KERNEL, name="relu", part="", graph=graph, nodes=("relu",), node="relu", reason="bisected, ...")
    wrong = stage("kernels", bad=True, node="relu", made_by=Maker(kind="backend", name="tvm"))
    return replace(report(kernels=(node,)), test="tvm", stages=(stage("dynamo"), wrong))


# ---------------------------------------------------------------- over the recording, whose nodes and kernels are real

PLANTED = "tests/recordings/planted.py"
RECORDED = replace(
    GUILTY,
    node="mul_1",
    file=PLANTED,
    line=18,
    above="mul_1",
    made_by=replace(PASS, file="tests/plant.py", diff=DIFF.replace("mul_3", "mul_1")),
)


def recorded_by_a_pass() -> DiffReport:
    """The recorded comparison as if a pass had been wrong, and every kernel right."""
    found = compared.report()
    kernels = tuple(replace(kernel, bad=False) for kernel in found.kernels)
    blamed = stages(RECORDED, stage("kernels", error=3e-4, added=1e-7))
    return replace(found, kernels=kernels, first_bad_kernel=None, stages=blamed)


def recorded_by_a_kernel() -> DiffReport:
    """The recorded comparison, whose third kernel is wrong, with its stages."""
    found = compared.report()
    wrong = stage("kernels", error=0.1, added=0.1, bad=True, node="mul_1", graph=POST_GRAD, file=PLANTED, line=18)
    return replace(found, stages=stages(wrong))


def app_comparing(folder: Path, report: DiffReport) -> IdbgApp:
    """The app over the recorded session, as if its comparison had given this report."""
    saved = folder / "planted"
    saved.mkdir()
    with (saved / "events.jsonl").open("wb") as file:
        for event in log("planted"):
            told = replace(event, report=report) if isinstance(event, events.Compared) else event
            file.write(event_log.encode(told) + b"\n")
    return ReadyApp(lambda: Session.open(saved), Settings())
