"""What is one planted error: where is it made, what shows it, and what must be said of it?

A plant is put into torch's own pipeline (its tables, its hooks, the code that it is about to load), and not into what
idbg captures. The line of its program that must be named ends with the comment `# guilty`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._functorch.config
import torch._inductor.config
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.reports.diff import ReadableReport
from idbg.schema.attribution import MakerKind, StageName
from idbg.schema.remarks import Remark
from idbg.views.blame import standing

Planting = Callable[[], AbstractContextManager[None]]
GUILTY = "# guilty"


@dataclass(frozen=True)
class Plant:
    """One error. `program` takes random tensors of these `shapes`; a class is a module, made first.

    `stage` is the first that is off, `maker` and `made_by` what made it so (a part of its name), `node` a part of the
    guilty node's name, or of the node that it stands for. A kernel's launch is accused at the stage "kernels", unless
    `no_kernel` says that all are faithful.
    """

    kind: str
    name: str
    program: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    planting: Planting
    stage: StageName
    maker: MakerKind
    made_by: str
    node: str = ""
    backward: bool = False
    dtype: torch.dtype = torch.float32
    test: str = "inductor"
    no_kernel: bool = False
    shown_by: Callable[..., Any] | None = None  # where the marked line stands, if not in the program
    indices: int = 0  # so many of the last shapes are of integers, below 8
    settings: Mapping[str, Any] = field(default_factory=dict)
    devices: tuple[str, ...] = ("cpu", "cuda")

    @property
    def id(self) -> str:
        way = "backward" if self.backward else "forward"
        return f"{self.kind}-{self.name}-{way}-{str(self.dtype).removeprefix('torch.')}"

    @property
    def guilty(self) -> tuple[str, int]:
        """The file and the line that must be named."""
        shown = self.shown_by or self.program
        lines, first = inspect.getsourcelines(shown)
        return str(inspect.getsourcefile(shown)), next(first + at for at, line in enumerate(lines) if GUILTY in line)

    def inputs(self, device: str) -> tuple[Tensor, ...]:
        """What the program is given: seeded, and the same each time."""
        torch.manual_seed(0)
        floats = len(self.shapes) - self.indices
        return (
            *(torch.randn(shape, device=device).to(self.dtype) for shape in self.shapes[:floats]),
            *(torch.randint(0, 8, shape, device=device) for shape in self.shapes[floats:]),
        )

    def model(self, device: str) -> Callable[..., Any]:
        """The program itself, or the module that its class makes."""
        torch.manual_seed(0)
        made: Any = self.program() if inspect.isclass(self.program) else self.program
        return made.to(device, self.dtype) if isinstance(made, nn.Module) else made

    def compared(self, device: str = "cpu", *, clean: bool = False) -> ReadableReport:
        """The comparison with the error planted; `clean`: without, all else being the same. Of a race one of five tries
        in which it had an effect: on a busy machine its threads may run one after the other.
        """
        tries = (self._compared_once(device, clean=clean) for _ in range(5 if self.kind == "race" and not clean else 1))
        report = next(tries)
        return report if has_effect(report) else next(filter(has_effect, tries), report)

    def _compared_once(self, device: str, *, clean: bool) -> ReadableReport:
        warm(device)
        with without_caches(self.settings):
            asked = KernelDiff(
                self.model(device),
                self.inputs(device),
                test=self.test,
                backward=self.backward,
                per_kernel=True,
            )
            if clean:
                return asked.compare()
            with self.planting():
                return asked.compare()


def has_effect(report: ReadableReport) -> bool:
    """Whether the outputs are wrong, and not by what happened in one run alone."""
    return report.verdict == "failed" and Remark("not repeated") not in report.notes


def misnamed(plant: Plant, report: ReadableReport) -> list[str]:
    """What the report says wrongly of the plant, or not at all; nothing where all of it is right."""
    if report.verdict != "failed":
        return [f"the plant has no effect: {report.verdict}"]
    stage = report.first_wrong_stage
    if stage is None:
        return ["no stage is guilty"]
    wrong = [] if stage.stage == plant.stage else [f"stage {stage.stage}, not {plant.stage}"]
    file, line = plant.guilty
    if (Path(stage.file).name, stage.line) != (Path(file).name, line):
        wrong.append(f"at {Path(stage.file).name}:{stage.line}, not {Path(file).name}:{line}")
    if plant.node and not (plant.node in stage.node or plant.node in stage.above):
        wrong.append(f"node {stage.node!r} for {stage.above!r}, not {plant.node}")
    below = [one for one in report.stages[report.stages.index(stage) :] if one.frame == stage.frame]
    if cleared := [one.stage for one in below if standing(one, report) == "implied"]:
        wrong.append(f"{cleared} below it are known to be right")
    maker = stage.made_by
    if maker is None:
        wrong.append("nothing is said to have made it")
    elif maker.kind != plant.maker or plant.made_by not in maker.name:
        wrong.append(f"made by {maker.kind} {maker.name!r}, not {plant.maker} {plant.made_by!r}")
    return [*wrong, *wrongly_accused(plant, report)]


def wrongly_accused(plant: Plant, report: ReadableReport) -> Iterator[str]:
    """Which kernel is accused where another is guilty, or none."""
    accused, (_, line) = report.culprit, plant.guilty
    if plant.stage != "kernels" or plant.no_kernel:
        if accused is not None:
            yield f"kernel {accused.name} (line {accused.line}) is accused"
    elif accused is None:
        yield "no kernel is accused"
    elif accused.line != line:
        yield f"kernel {accused.name} of line {accused.line} is accused, not one of line {line}"


@contextmanager
def without_caches(settings: Mapping[str, Any]) -> Iterator[None]:
    """Nothing is taken that was compiled without the plant (its key does not know of it), and nothing is kept."""
    caches = {"fx_graph_cache": False, "fx_graph_remote_cache": False}
    with (
        torch._inductor.config.patch({**caches, **settings}),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        torch._dynamo.reset()
        try:
            yield
        finally:
            torch._dynamo.reset()


_WARM: set[str] = set()


def warm(device: str) -> None:
    """Have torch make its tables of patterns, forward and backward, with no error in them: they are made once."""
    if device in _WARM:
        return
    _WARM.add(device)
    with without_caches({}):
        torch.compile(lambda x: x.sin().sum())(torch.ones(4, device=device, requires_grad=True)).backward()
        torch.compile(lambda x: x.sin().sum())(torch.ones(4, device=device))
