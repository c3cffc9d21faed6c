"""Read what Inductor dumps with TORCH_COMPILE_DEBUG: a folder for each graph, of one process.

run_2026_03_01_10_15_00_123456-pid_4711/torchinductor/model__0_inference_0.0/
    fx_graph_readable.py      the graph that Inductor gets; fx_graph_transformed.py: after its passes
    output_code.py            and fx_graph_runnable.py, ir_pre_fusion.txt, ir_post_fusion.txt
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from idbg.format.amounts import counted, size
from idbg.schema.graphs import Frame, GraphId, Part, Stage
from idbg.stages import StageText
from idbg.traces.imported import AOT
from idbg.traces.process import Emit, Opening, ProcessLog
from idbg.traces.records import json_object
from idbg.traces.sources import GRAPH_FOLDER, files_of, opened

FILE_LIMIT = 32 << 20  # bytes of a file that is read
_MAPPING = "inductor_provenance_tracking_node_mappings.json"
_READ = ("fx_graph_readable.py", "fx_graph_transformed.py", _MAPPING, "output_code.py")
_BINARY = (".svg", ".png", ".so", ".pt", ".safetensors")


class DebugFolder:
    """One process's dumps on their way into a log. Each graph becomes a frame of its number."""

    def __init__(self, folder: Path, opening: Opening, write: Emit) -> None:
        self.folder = folder
        self.read_bytes = 0
        self._log = ProcessLog(opening, write)
        self._seen: set[Path] = set()
        self._unreadable: list[str] = []

    @property
    def last_phase(self) -> str:
        """Not in the dumps."""
        return ""

    def steps(self, *, is_whole: bool) -> Iterator[int]:
        """Read the graphs that are complete: those of a folder that has its code, and all if no more comes."""
        by_graph: dict[Path, list[Path]] = {}
        others: list[Path] = []
        for file in files_of(self.folder):
            if GRAPH_FOLDER.match(file.parent.name):
                by_graph.setdefault(file.parent, []).append(file)
            else:
                others.append(file)
        for folder, files in sorted(by_graph.items(), key=lambda item: _number(item[0])):
            if folder not in self._seen and (is_whole or any(file.name == "output_code.py" for file in files)):
                self._seen.add(folder)
                self._read_graph(folder, {file.name: file for file in files})
                yield self.read_bytes
        if is_whole:
            for file in others:
                self._log.begin(file.stat().st_mtime)
                self._stage(file, "", "")
                yield self.read_bytes

    def _read_graph(self, folder: Path, files: dict[str, Path]) -> None:
        match = GRAPH_FOLDER.match(folder.name)
        assert match is not None
        model, number, part = match[1], match[2] or match[4], cast("Part", match[3] or "inference")
        self._log.begin(min(file.stat().st_mtime for file in files.values()))
        name, run = f"{number}/0" if match[2] else f"{AOT}#{number}", self._log.run
        run.backend_found("inductor" if match[2] else "aoti")
        if run.started(name) is None:
            run.frame_started(Frame(name, model))
        frame = run.frame(name)
        texts = {each: self._text(files[each]) for each in _READ if each in files}
        if text := texts.get("fx_graph_readable.py"):
            frame.read(text, GraphId(name, cast("Stage", part)), list(frame.graphs.values()))
        if text := texts.get("fx_graph_transformed.py"):
            frame.graph_printed("inductor_post_grad_graph", text)
        if text := texts.get(_MAPPING):
            frame.nodes_mapped(cast("dict[str, dict[str, list[str]]]", json_object(text)))
        if text := texts.get("output_code.py"):
            frame.code_written(text)
        frame.part_done(part)
        for each, file in files.items():
            if each not in _READ:
                self._stage(file, name, part)
        run.part_of_frame_done(name)

    def _stage(self, file: Path, frame: str, part: str) -> None:
        """Show any other file as a stage of Inductor's, or of Dynamo's."""
        if file.suffix in _BINARY or not (text := self._text(file)):
            return
        compiler = file.parent.name if file.parent.name.startswith("torch") else "inductor"
        self._log.run.stages.add(compiler, StageText(file.name, text, frame=frame, part=part), "dump", of_author=False)

    def _text(self, file: Path) -> str:
        try:
            with opened(file) as source:
                data = source.read(FILE_LIMIT + 1)
        except OSError as error:
            self._unreadable.append(f"{file.name} cannot be read: {error.strerror or error}")
            return ""
        self.read_bytes += len(data)
        if len(data) > FILE_LIMIT:
            self._unreadable.append(f"{file.name} is left out: it is larger than {size(FILE_LIMIT)}")
            return ""
        return data.decode("utf-8", "replace")

    def end(self) -> None:
        """End the run, and say what was left out."""
        more = self._unreadable[10:]
        self._log.end([*self._unreadable[:10], *([f"{counted(len(more), 'more file')} left out"] if more else [])])


def scheduler_dumps(folder: Path) -> Iterator[tuple[str, StageText]]:
    """Inductor's dumps of its scheduler, which are in no trace: the number of the graph, and the text."""
    for file in sorted(files_of(folder), key=lambda file: _number(file.parent)):
        if file.name.startswith("ir_") and (match := GRAPH_FOLDER.match(file.parent.name)):
            with opened(file) as source:
                text = source.read(FILE_LIMIT).decode("utf-8", "replace")
            yield match[2] or "", StageText(file.name, text, part=match[3] or "")


def _number(folder: Path) -> int:
    """When a graph was dumped, among the others."""
    match = GRAPH_FOLDER.match(folder.name)
    return int(match[5]) if match else 0
