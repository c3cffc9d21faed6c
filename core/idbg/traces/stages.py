"""Collect the stages of other compilers, with their links to the nodes of the graphs that they compiled.

A text is linked when its frame's graphs are known. What is wrong with a stage is one sentence in the run.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from msgspec.structs import replace

from idbg.analysis.stage_links.languages import SUFFIXES, language_of
from idbg.analysis.stage_links.resolve import linked
from idbg.format.amounts import size as in_words
from idbg.schema import events
from idbg.schema.code import CompilerStage, StageKey, StageOrigin
from idbg.schema.graphs import Graph, Part
from idbg.stages import StageText
from idbg.traces.frame import Emit, TracedFrame

TEXT_LIMIT = 200_000  # bytes of a text in an event; longer ones are files of the session's folder
LINKED = 4_000_000  # characters of a text that are searched for links
FILE_LIMIT = 128 << 20  # bytes of one text
RUN_LIMIT = 512 << 20  # bytes of all texts of a run
MOST = 500  # stages of a run
UNLINKED = frozenset({"torch", "torchdynamo", "inductor"})  # their texts name nodes, and no lines of the program
_PARTS = ("forward", "backward", "inference")


class _Waiting(NamedTuple):
    """A stage whose frame is not complete."""

    record: CompilerStage
    beginning: str  # of the text: what is searched for links
    links: Mapping[int | str, Sequence[str]]
    of_author: bool  # a link to a node that does not exist is an error


class Stages:
    """The stages of one run, from all their sources.

    `frames` are the run's, by their names in the session; `named` gives such a name for torch's compile id; `note` adds
    a warning to the run.
    """

    def __init__(
        self,
        run: int,
        emit: Emit,
        frames: Mapping[str, TracedFrame],
        named: Callable[[str], str],
        note: Callable[[str], None],
    ) -> None:
        self._run, self._emit, self._frames, self._named, self._note = run, emit, frames, named, note
        self.folder: Path | None = None  # the session's, for long texts
        self.read_dumps: Callable[[], None] = lambda: None
        self.current: Callable[[], tuple[str, Part]] = lambda: ("", "")  # torch's id of the frame that is compiled
        self.text_limit, self.most = TEXT_LIMIT, MOST
        self._waiting: list[_Waiting] = []
        self._keys: set[StageKey] = set()
        self._count = 0
        self._written = 0
        self.sent = 0

    def add(self, compiler: str, stage: StageText, origin: StageOrigin, *, of_author: bool = True) -> None:
        """Take a stage in; of one that cannot be shown only a sentence. `of_author`: its links are the author's, and
        not of a reader of ours, which names whatever the compiler has.
        """
        if (why := _wrong(stage)) is not None:
            self._note(f"a stage of {compiler} is left out: {why}")
            return
        if self._count >= self.most:
            self._note(
                f"{compiler} has more stages than the {self.most:,} of a run that are shown: the rest is left out"
            )
            return
        self._count += 1
        data, text = _decoded(stage.text)
        current_frame, current_part = self.current()
        frame = self._named(stage.frame or current_frame)
        part = stage.part if stage.part in _PARTS else current_part
        language = (stage.language or language_of(stage.name, text)) if text is not None else ""
        record = CompilerStage(
            frame=frame,
            part=cast("Part", part),
            compiler=compiler,
            name=self._unique(frame, cast("Part", part), compiler, stage.name),
            language=language,
            origin=origin,
            size=len(data),
            binary=text is None,
        )
        if text is not None:
            record = self._with_text(record, data, text)
        beginning = (text or "")[:LINKED] if compiler not in UNLINKED else ""
        self._waiting.append(_Waiting(record, beginning, self._links(compiler, stage), of_author))
        known = self._frames.get(frame)
        if known is None or known.finished:
            self.send(frame)

    def frame_done(self, frame: TracedFrame) -> None:
        """All graphs of this frame are known."""
        self.read_dumps()
        self.send(frame.frame)

    def forget(self, frame: str) -> None:
        """The frame is traced anew: its stages so far are void."""
        self._waiting = [each for each in self._waiting if each.record.frame != frame]
        self._keys = {key for key in self._keys if key[0] != frame}

    def send(self, frame: str | None = None) -> None:
        """Emit what waits, of this frame or of all, with its links."""
        ready = [each for each in self._waiting if frame is None or each.record.frame == frame]
        self._waiting = [each for each in self._waiting if each not in ready]
        for each in ready:
            self._send(each)

    def _send(self, each: _Waiting) -> None:
        record = each.record
        known = self._frames.get(record.frame)
        frames = [known] if known is not None else [*self._frames.values()][:2]
        if len(frames) == 1 and (each.beginning or each.links):
            graphs, handles = _graphs(frames[0], record.part), frames[0].handles
            found = linked(each.beginning, record.language, each.links, graphs, handles)
            if found.unknown and each.of_author:
                names = ", ".join(found.unknown[:5]) + (" ..." if len(found.unknown) > 5 else "")
                self._note(
                    f"{record.compiler} links its stage {record.name} to nodes that do not exist ({names}): "
                    "these links are left out"
                )
            record = replace(record, graph=found.graph, links=found.links)
        self.sent += 1
        self._emit(events.StageCaptured(run=self._run, stage=record))

    def _unique(self, frame: str, part: Part, compiler: str, name: str) -> str:
        name = " ".join(name.split())[:200] or "stage"
        found, number = name, 1
        while (frame, part, compiler, found) in self._keys:
            number += 1
            found = f"{name} ({number})"
        self._keys.add((frame, part, compiler, found))
        return found

    def _with_text(self, record: CompilerStage, data: bytes, text: str) -> CompilerStage:
        """The record with its text, or with the file that has it."""
        if len(data) > FILE_LIMIT or self._written + len(data) > RUN_LIMIT:
            limit = f"{in_words(FILE_LIMIT)} of one text and {in_words(RUN_LIMIT)} of a run are kept"
            self._note(
                f"the text of {record.compiler}'s stage {record.name} ({in_words(len(data))}) is left out: {limit}"
            )
            return record
        self._written += len(data)
        suffix = SUFFIXES.get(record.language, ".txt")
        name = f"{self._count:03}-{_safe(record.compiler)}-{_safe(record.name)}{suffix}"
        file = f"run-{self._run}/stages/{name}" if self.folder is not None else ""
        if len(data) <= self.text_limit:
            return replace(record, text=text, file=file)
        if self.folder is None:
            self._note(
                f"the text of {record.compiler}'s stage {record.name} ({in_words(len(data))}) is cut after "
                f"{in_words(TEXT_LIMIT)}: without a session's folder no long text is kept"
            )
            return replace(record, text=data[:TEXT_LIMIT].decode("utf-8", "ignore"))
        try:
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            why = error.strerror or str(error)
            self._note(f"the text of {record.compiler}'s stage {record.name} could not be written: {why}")
            return record
        return replace(record, file=file)

    def _links(self, compiler: str, stage: StageText) -> Mapping[int | str, Sequence[str]]:
        """The author's links that can be read as such."""
        good: dict[int | str, Sequence[str]] = {}
        items = stage.links.items() if isinstance(stage.links, Mapping) else ()
        for key, value in items:
            names: Sequence[str] = (value,) if isinstance(value, str) else value
            is_names = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
            if isinstance(key, int | str) and is_names:
                good[key] = names
        if len(good) < len(stage.links or ()):
            self._note(
                f"links of {compiler}'s stage {stage.name} are left out: a link is a line or a string, and names of "
                "nodes"
            )
        return good


def _wrong(stage: StageText) -> str | None:
    """Why this is no stage; None where it is one."""
    if not isinstance(stage, StageText):
        return f"it is of type {type(stage).__name__}, not StageText"
    if not isinstance(stage.name, str) or not isinstance(stage.language, str):
        return "its name and its language must be of type str"
    if not isinstance(stage.text, str | bytes):
        return f"the text of {stage.name} is of type {type(stage.text).__name__}, not str or bytes"
    return None


def _decoded(text: str | bytes) -> tuple[bytes, str | None]:
    """The bytes of a text, and the text; None where it is none."""
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    if b"\0" in data[: 1 << 16]:
        return data, None
    if isinstance(text, str):
        return data, text
    try:
        return data, text.decode()
    except UnicodeDecodeError:
        return data, None


def _graphs(frame: TracedFrame, part: Part) -> Sequence[Graph]:
    """The graphs that a stage may name, those of its part first, then Dynamo's."""
    rank = {part: 0, "inference": 1, "forward": 2, "dynamo": 3, "backward": 4}
    return sorted(frame.graphs.values(), key=lambda graph: rank.get(graph.id.part or graph.id.stage, 5))


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-")[:60] or "stage"
