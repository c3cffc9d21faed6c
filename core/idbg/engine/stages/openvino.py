"""Read OpenVINO's models, as its torch.compile backend makes them: each before and after its transformations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec
from torch.fx import GraphModule

from idbg.analysis.stage_links import openvino as layers
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import openvino_stages as openvino
from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.origins import frame_of, sources_recorded
from idbg.schema.graphs import GraphId
from idbg.stages import StageReader, StageText

STAGES = {"before.xml": "before transformations", "after.xml": "after transformations"}
_ABOUT = "graph.json"


class _About(msgspec.Struct):
    """The frame of a graph, and what its nodes came from."""

    frame: str
    origins: dict[str, str]


class OpenVino(StageReader):
    """The models of each partition that OpenVINO compiles, at its first call."""

    compiler = "openvino"
    package = "openvino.frontend.pytorch.torchdynamo.execute"

    def __init__(self, capture: RunCapture) -> None:
        self._capture = capture

    @contextmanager
    def dumping(self, folder: Path, ready: Callable[[], None]) -> Iterator[None]:
        numbers = count(1)

        def compiled(gm: GraphModule, model: object, compile: Callable[[], openvino.Executed]) -> openvino.Executed:
            created = folder / f"{next(numbers):04}"
            created.mkdir()
            frame = frame_of(gm)
            about = _About(frame, {**openvino.origins(gm), **self._arguments(frame)})
            (created / _ABOUT).write_bytes(msgspec.json.encode(about))
            openvino.save(model, created / "before.xml")
            try:
                result = compile()
                openvino.save(result.get_runtime_model(), created / "after.xml")
                return result
            finally:
                ready()

        with hooked(self._capture.feature("OpenVINO stages"), openvino.wrappers(compiled)), sources_recorded():
            yield

    def _arguments(self, frame: str) -> dict[str, str]:
        """The arguments of a graph that was traced again are numbered: "arg3_1" is the fourth of Dynamo's graph."""
        known = self._capture.frames.get(self._capture.named(frame))
        graph = known.graphs.get(GraphId(known.frame, "dynamo")) if known is not None else None
        names = (node.name for node in (graph.nodes if graph is not None else ()) if node.op == "placeholder")
        return {f"arg{index}_1": name for index, name in enumerate(names)}

    def read(self, folder: Path) -> Iterator[StageText]:
        for graph in sorted(folder.iterdir()):
            if not (graph / _ABOUT).is_file():
                continue
            about = msgspec.json.decode((graph / _ABOUT).read_bytes(), type=_About)
            for name, stage in STAGES.items():
                if (graph / name).is_file():
                    text = (graph / name).read_text(errors="backslashreplace")
                    yield StageText(stage, text, "xml", _links(text, about.origins), about.frame)


def _links(text: str, origins: dict[str, str]) -> dict[int | str, tuple[str, ...]]:
    """The lines of layers that are named after a node of the graph, with what the node came from."""
    marks = layers.marks_of(text)
    found = {line: tuple(origins[name] for name in mark.names if name in origins) for line, mark in marks.items()}
    return {line: tuple(dict.fromkeys(names)) for line, names in found.items() if names}
