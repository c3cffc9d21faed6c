"""Turn the records of a trace file into the events of a run."""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.accelerators.model import Accelerator
from idbg.analysis.decisions.break_report import limit_hit, read_stack, stack_of_error, whose
from idbg.analysis.decisions.caches import Key, nearest, parts_of
from idbg.analysis.decisions.frames import resumed
from idbg.analysis.decisions.guard_text import read_guards
from idbg.analysis.decisions.guards import read_failed
from idbg.analysis.graph_text import read_graph
from idbg.analysis.raised_text import raised_by_backend
from idbg.schema import events
from idbg.schema.decisions import reports
from idbg.schema.decisions.dynamo import FailedGuard, FrameEnd, GraphBreak
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Node, Part, Role, Sym
from idbg.schema.programs import Failure, Verdict
from idbg.stages import StageText
from idbg.traces import cache_answers, exported
from idbg.traces.compiled_calls import CompiledCalls
from idbg.traces.enrich import symbols_of, with_arguments
from idbg.traces.frame import PRINTED, Emit, InductorOutput, TracedFrame
from idbg.traces.reader import RecordReader
from idbg.traces.records import (
    Measured,
    Metadata,
    Timed,
    compile_id,
    count_of,
    each_reason,
    frame_of,
    json_object,
    name_of,
    number,
    too_long,
)
from idbg.traces.run import TracedRun, frame_result
from idbg.traces.spans import SpanStacks
from idbg.traces.stream import Record

RUN = 1
NODES_HELD = 50_000  # of the graphs of finished frames: a backward that is compiled later is linked to its forward
NODES_PARSED = 30_000  # of texts that were read: ranks and layers print the same graphs again
SPANS_AT_ONCE = 500
MOST_STAGES = 20_000
KEYS_HELD = 4  # of each function, with which the next is compared
AOT = "aoti"  # the frame of AOTInductor's compile, to which torch gives no id
RECORDS_BREAKS = [2, 11]  # since then torch records each break that is no error
MOST_ERROR = 20_000  # characters of an error of Dynamo's, whose end matters
MOST_FAILED = 64  # versions of a frame whose failed guards are read
_AOT_NUMBER = re.compile(r"# AOT ID: \['(\d+)_")
_LOCAL = re.compile(r"(?!_{3}check|G\[|L\[)([A-Za-z_]\w*)(?=\.|\[|$)")
_OF_VALUES = ("value", "size", "tensor", "type", "identity", "length", "key")
_RANGE = re.compile(r"\[(-?\d+|-?int_oo), (-?\d+|int_oo)\]")
# what has no payload that is read, and is most of a trace's records
_UNREAD = frozenset(
    {
        *("describe_storage", "describe_tensor", "describe_source", "guard_added", "guard_added_fast", "link"),
        *("expression_created", "propagate_real_tensors", "create_unbacked_symbol", "symbolic_shape_specialization"),
    }
)
_NO_STAGES = frozenset({"torch_version", "process_name", "thread_name", "fx_graph_cache_hash"})
_OF_AOT = ("_graph", "_recompile_pre_grad", "_graph_runnable")  # the ends of the names of AOTInductor's artifacts
_OTHER_GRAPHS = ("compiled_autograd_graph", "optimize_ddp_split_graph", "optimize_ddp_split_child", "dump_file")


class ImportedFrame(TracedFrame):
    """One frame of a trace file. Its graphs are read as they come; a backward may come long after its forward."""

    is_foreign = True

    def __init__(self, frame: str, run: "ImportedRun") -> None:
        super().__init__(frame, run.run, run.emit)
        self.of_run = run
        self.symbols: dict[str, Sym] = {}
        self._emitted: set[tuple[GraphId, GraphId]] = set()

    def graph_printed(self, kind: str, text: str) -> None:
        if kind == "inductor_post_grad_graph":
            super().graph_printed(kind, text)
        else:
            self.read(text, GraphId(self.frame, PRINTED[kind]), list(self.graphs.values()))

    def code_written(self, text: str) -> None:
        super().code_written(text)
        if number := _AOT_NUMBER.search(text[:400]):
            self.of_run.frame_of_graph[number[1]] = self.frame

    def _finish_piece(self, piece: InductorOutput, part: Part) -> None:
        if why := too_long(piece.code):
            self._unreadable(f"the {part} output code", ValueError(why))
            piece.code = ""
        super()._finish_piece(piece, part)

    def parsed(self, text: str, graph_id: GraphId, donors: list[Graph]) -> Graph:
        if why := too_long(text):
            raise ValueError(why)
        return Graph(graph_id, self.of_run.nodes_of(text, {**symbols_of(donors), **self.symbols}), text)

    def enriched(self, graph: Graph, donors: list[Graph]) -> Graph:
        if graph.id.stage == "dynamo":
            return Graph(graph.id, tuple(map(_with_role, graph.nodes)), graph.code)
        dynamo = self.graphs.get(GraphId(self.frame, "dynamo"))
        if dynamo is not None and graph.id.stage != "post_grad":
            graph = with_arguments(graph, dynamo, self.graphs.get(GraphId(self.frame, "forward")))
        return super().enriched(graph, donors)

    def _unreadable(self, what: str, error: Exception) -> None:
        self.of_run.has_graphs = True  # it is there, whatever it is
        super()._unreadable(what, error)

    def captured(self, graph: Graph) -> Graph:
        captured = super().captured(graph)
        self.of_run.has_graphs = True
        self.of_run.check(captured)
        return captured

    def linked(self, linked: Links) -> None:
        if (pair := (linked.above, linked.below)) not in self._emitted and linked.pairs:
            self._emitted.add(pair)
            super().linked(linked)

    def part_without_name(self) -> Part:
        known = [each for each in ("inference", "forward") if GraphId(self.frame, each) in self.graphs]
        return known[0] if known else ""  # type: ignore[return-value]

    def forget_graphs(self) -> None:
        """Drop the graphs: what comes later is not linked to them."""
        self.graphs, self.handles, self._emitted = {}, {}, set()


def _with_role(node: Node) -> Node:
    """A Dynamo graph names its arguments by where the program has them."""
    if node.op != "placeholder" or node.role != "input":
        return node
    name = node.target.lower()
    role: Role = "weight" if "_parameters_" in name else "buffer" if "_buffers_" in name else "input"
    return replace(node, role=role)


class ImportedRun(TracedRun[ImportedFrame]):
    """The run of one process, from its trace. `folder`: the session's, for long texts."""

    def __init__(self, emit: Emit, accelerator: Accelerator | None, folder: Path | None) -> None:
        super().__init__(RUN, emit, accelerator)
        self.stages.folder, self.stages.most = folder, MOST_STAGES
        self.stages.text_limit = 0 if folder is not None else self.stages.text_limit
        self.outcomes.fullgraph = None
        self.suppresses_errors = False
        self.limit: int | None = None  # torch's recompile_limit, and the one of all entries
        self.limit_all: int | None = None
        self.began = self.ended = 0.0
        self.has_graphs = False
        self._backends: list[str] = []
        self._starting = Frame("", "")
        self._broke: dict[tuple[str, str], list[str]] = {}  # by file and function: frames, in the order of their breaks
        self._resumed: set[tuple[str, str]] = set()  # a frame that broke, and a function in which it goes on
        self._went_on: set[str] = set()  # torch's ids of frames that failed before another began
        self.frame_of_graph: dict[str, str] = {}  # by AOTAutograd's number of a graph
        self._spans = SpanStacks("", self.named)
        self.timekeeper = self._take_time
        self.is_of_new_torch = self.has_guards = self.has_answers = self._counted_guards = False
        self._texts: dict[str, str] = {}  # of Dynamo's errors, by torch's compile id
        self._keys: dict[str, list[Key]] = {}  # of the FX graph cache, by the frame's place
        self._nodes: OrderedDict[tuple[bytes, tuple[tuple[str, Sym], ...]], tuple[Node, ...]] = OrderedDict()
        self._held: dict[str, int] = {}  # the nodes of the frames whose graphs are held, in the order of their ends
        self._parsed = 0

    def new_frame(self, name: str) -> ImportedFrame:
        return ImportedFrame(name, self)

    def nodes_of(self, text: str, symbols: dict[str, Sym]) -> tuple[Node, ...]:
        """The nodes that a text prints. Equal texts share them. Raises ValueError."""
        key = hashlib.md5(text.encode(), usedforsecurity=False).digest(), tuple(sorted(symbols.items()))
        if (known := self._nodes.get(key)) is not None:
            self._nodes.move_to_end(key)
            return known
        nodes = read_graph(text, GraphId("", "dynamo"), symbols).nodes
        self._nodes[key] = nodes
        self._parsed += len(nodes)
        while self._parsed > NODES_PARSED and len(self._nodes) > 1:
            self._parsed -= len(self._nodes.popitem(last=False)[1])
        return nodes

    def frame_started(self, frame: Frame) -> None:
        self._went_on.update(self.outcomes.problems)
        self._starting = frame
        super().frame_started(frame)

    def parent(self) -> str:
        """The frame whose function goes on in the one that begins: the last that broke, if it does not go on there
        yet, or the only one.
        """
        if resumed(self._starting.function) is None or not (broke := self._broke.get(_whole(self._starting))):
            return ""
        is_new = (broke[-1], self._starting.function) not in self._resumed
        self._resumed.add((broke[-1], self._starting.function))
        return broke[-1] if is_new or len(broke) == 1 else ""

    def _emit_break(self, found: GraphBreak) -> None:
        super()._emit_break(found)
        name = self.named(found.frame)
        if (frame := self.started(name)) is not None:
            broke = self._broke.setdefault(_whole(frame), [])
            broke += [name] if name not in broke[-1:] else []

    def backend_found(self, backend: str) -> None:
        """The trace has what this backend did."""
        if backend not in self._backends:
            self._backends.append(backend)
            self.emit(events.BackendsCalled(run=self.run, backends=tuple(self._backends)))

    def frame_erred(self, frame: str, text: str) -> None:
        self._texts[frame] = text[-MOST_ERROR:]
        super().frame_erred(frame, text)

    def _explained(self, frame: str, failure: Failure) -> Failure:
        """The failure with its traceback, and the innermost line of the user's in that, or where the frame is."""
        text = self._texts.get(frame, "")
        known = self.started(self.named(frame))
        own = [line for line in read_stack(text) if whose(line.file) == "user"]
        file, line = (own[-1].file, own[-1].line) if own else (known.file, known.line) if known else ("", 0)
        here = {} if failure.file else {"file": file, "line": line}
        return replace(failure, traceback=failure.traceback or text.strip(), **here)

    def measured(self, name: str, measured: Measured) -> None:
        self._counted_guards |= bool(measured.guards)
        if measured.problem is not None and (raised := raised_by_backend(measured.problem.reason)) is not None:
            self.backend_found(raised[0])
        frame = self.frames[name] if name in self.frames else self.frame(name)
        compiled_id = name.partition("#")[0]
        result = frame_result(
            name,
            self._end(frame, measured),
            measured,
            tuple(self.failed_guards.pop(compiled_id, ())),
            stack_of_error(self.errors.pop(compiled_id, "")),
        )
        self.decided(name, replace(result, limit=self.limit, limit_all=self.limit_all))
        self.part_of_frame_done(name)
        frame.finished = True

    def part_of_frame_done(self, name: str) -> None:
        """A compile of the frame, or of its backward, is over."""
        if (frame := self.frames.get(name)) is None:
            return
        frame.flush()
        self.stages.send(name)
        self._send_spans()
        self._forget_old(name, sum(len(graph.nodes) for graph in frame.graphs.values()))

    def _forget_old(self, name: str, nodes: int) -> None:
        """Drop the graphs of the frames that ended first, beyond NODES_HELD nodes."""
        self._held.pop(name, None)
        self._held[name] = nodes
        while sum(self._held.values()) > NODES_HELD and len(self._held) > 1:
            oldest = next(iter(self._held))
            del self._held[oldest]
            self.frames[oldest].forget_graphs()

    def _end(self, frame: ImportedFrame, measured: Measured) -> FrameEnd:
        if measured.problem is None:
            return "compiled" if frame.graphs or measured.ops or measured.guards else "skipped"
        failed = any(self.named(one) == frame.frame for one in self.outcomes.problems)
        return "failed" if failed and not self.suppresses_errors else "eager"

    def cache_answered(self, frame: str, found: cache_answers.GraphCacheAnswer) -> None:
        """A graph cache answered. A miss is compared with the keys before it in this trace."""
        self.has_answers = True
        name = self.named(frame)
        started = self.started(name)
        place = f"{started.file}:{started.function}" if started else ""
        components = found.payload.get("components")
        lines = [str(line) for line in components] if isinstance(components, list) else []
        parts = {part.name: part for part in parts_of(lines)}
        key = Key(str(found.payload.get("key", "")), place, f"frame {name} of this trace", parts)
        near = None
        if found.cache == "fx_graph" and parts:
            alike = self._keys.setdefault(place, [])
            near = nearest(key, alike) if found.outcome == "miss" else None
            alike[:] = [*alike[1 - KEYS_HELD :], key]
        answer = cache_answers.described(found, "", key, near, "the trace does not say why")
        self.decided(name, answer)

    @property
    def verdict(self) -> Verdict:
        """The verdict of all that was read."""
        return "violations" if self.violations else "compiled" if self.has_graphs else "empty"

    def _unrecorded(self) -> Iterator[str]:
        """Of what the trace has no record. Torch since 2.6, whose metrics have Dynamo's settings, writes a record of
        each break, recompile, guard and answer of a cache.
        """
        seen = {
            "graphs": any(frame.graphs for frame in self.frames.values()),
            "breaks": self.is_of_new_torch or self.has_broken,
            "recompiles": self.is_of_new_torch or self.has_recompiled,
            "guards": self.has_guards or (self.is_of_new_torch and not self._counted_guards),
            "cache": self.is_of_new_torch or self.has_answers,
            "time": self._spans.has_begun,
        }
        yield from sorted({"skips", *(each.name for each in reports() if each.lacks)} - seen.keys())
        yield from (record for record, is_there in seen.items() if self.frames and not is_there)

    def _take_time(self, frame: str, part: Timed) -> None:
        self.began = self.began or part.at
        self.ended = max(self.ended, part.at)
        if part.began:
            self._spans.begin(frame, part, "")
        else:
            self._spans.end(part, "")
        if len(self._spans.pending) >= SPANS_AT_ONCE:
            self._send_spans()

    def _send_spans(self) -> None:
        self.decided("", *self._spans.taken())

    def finish(self) -> None:
        super().finish()
        self._send_spans()
        self.emit(events.NotRecorded(run=self.run, records=tuple(self._unrecorded())))
        for frame, failure in self.outcomes.swallowed(()):
            if isinstance(failure, BaseException):
                continue
            failure = self._explained(frame, failure)
            went_on = True if self.suppresses_errors or frame in self._went_on else None
            if not went_on:
                failure = replace(failure, hint="the trace ends with this, which may have ended the program")
            failed = events.FrameFailed(run=self.run, frame=self.named(frame), failure=failure, went_on=went_on)
            self.emit(failed)


class FileReader(RecordReader):
    """Passes the records of a trace file to its run."""

    def __init__(self, run: ImportedRun) -> None:
        super().__init__(run)
        self.imported = run
        self.torch = ""  # its version, where the trace has it
        self._version = ""
        self._called = CompiledCalls(run)
        self._outside = False  # of Dynamo: AOTInductor compiles
        self._files: dict[int, str] = {}
        self._writer = ""

    def file_of(self, number: int) -> str:
        return self._files.get(number, "")

    def record(self, record: Record) -> bool:
        """Take in one record; False where it has a form that is not known."""
        try:
            self._take(record)
        # a trace may come from anybody, and from a torch that does not exist yet: a record of another form is no error
        except (
            *(KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, ArithmeticError),
            msgspec.MsgspecError,
        ):
            return False
        return True

    def _take(self, record: Record) -> None:
        kind, metadata = record.kind, record.metadata
        if kind in _UNREAD:
            return
        self._writer = record.writer
        about = metadata[kind]
        frame = compile_id(metadata) or self._frame_outside(kind, metadata)
        if kind == "str" and isinstance(about, list):
            self._files[int(about[1])] = str(about[0])
        elif kind == "create_symbol":
            self.imported.frame(frame).symbols.update(_symbol(about))
        elif kind == "dynamo_cpp_guards_str":
            name = self.imported.frame(frame).frame
            self.imported.has_guards = True
            self.run.decided(name, read_guards(record.text, name))
        elif kind in exported.KINDS:
            exported.read(self.run, kind, record.text)
        elif kind == "artifact" and name_of(about) == exported.PARTIAL:
            exported.read(self.run, exported.PARTIAL, record.text)
        elif kind in _OTHER_GRAPHS:
            self.unread(frame, kind, record.text)
        else:
            self._read_shared(frame, metadata, record.text)

    def _read_shared(self, frame: str, metadata: Metadata, text: str) -> None:
        if (answer := cache_answers.read_answer(metadata, text)) is not None and frame:
            self.imported.cache_answered(frame, answer)
        kind = next(iter(metadata))
        if kind == "artifact" and name_of(metadata[kind]) == "torch_version":
            self._torch_found(json_object(text).get("pytorch_version"))
        if kind == "artifact" and name_of(metadata[kind]) == "recompile_reasons":
            self._failed_guards(frame, text)
        if kind == "artifact" and (seen := self._called.seen(name_of(metadata[kind]), frame, text)) is not None:
            self.run.emit(seen)
            return
        if kind == "inductor_output_code":
            self.imported.backend_found("inductor")
        metrics = metadata[kind] if kind == "compilation_metrics" else None
        if isinstance(metrics, dict):
            if not frame:
                return
            self._torch_found(metrics.get("pytorch_version"))
            self._settings(metrics)
            self._begin_lost(frame, metrics)
            start = number(metrics.get("start_time"))
            if frame == AOT and start is not None:  # torch has only its beginning
                metrics["entire_frame_compile_time_s"] = max(self.imported.ended - start, 0.0)
        self.read(metadata, text, frame)
        if kind == "bwd_compilation_metrics":
            self.imported.part_of_frame_done(self.imported.named(frame))

    def _failed_guards(self, frame: str, text: str) -> None:
        failed = [_with_scope(read_failed(each).failed) for each in each_reason(text)[:MOST_FAILED]]
        self.run.failed_guards[frame] = [replace(each, against=self.run.named(each.against)) for each in failed]

    def _frame_outside(self, kind: str, metadata: Metadata) -> str:
        """The frame of a record of AOTInductor's compile, which is of none of Dynamo's; "" of any other record."""
        is_graph = kind in PRINTED or kind == "graph_dump" or name_of(metadata[kind]).endswith(_OF_AOT)
        if not self._outside and is_graph:
            self._outside = True
            stack = metadata.get("stack")
            lines = [frame_of("", {"stack": [each]}, self.file_of) for each in stack] if isinstance(stack, list) else []
            own = next((line for line in reversed(lines) if whose(line.file) == "user"), Frame("", ""))
            self.run.frame_started(Frame(AOT, "AOTInductor", own.file, own.line))
            self.imported.backend_found("aoti")
        is_of_it, self._outside = self._outside, self._outside and kind != "compilation_metrics"
        return AOT if is_of_it else ""

    def _begin_lost(self, frame: str, metrics: dict[str, object]) -> None:
        """A compile ends whose beginning the trace does not have. One beyond the limit of recompiles has none."""
        function, file = metrics.get("co_name"), metrics.get("co_filename")
        if self.run.started(self.run.named(frame)) is None and isinstance(function, str):
            line = count_of(metrics.get("co_firstlineno")) or 0
            if not limit_hit(str(metrics.get("fail_reason"))):
                self.run.frame_started(Frame(frame, function, str(file or ""), line))

    def _torch_found(self, version: object) -> None:
        if isinstance(version, str) and version and not self._version:
            self._version = self.torch = version
            self.imported.is_of_new_torch = True  # older ones do not name themselves
            numbers = [int(each) for each in re.findall(r"\d+", version)[:2]]
            self.run.outcomes.records_breaks = numbers >= RECORDS_BREAKS

    def _settings(self, metrics: dict[str, object]) -> None:
        self.imported.suppresses_errors = metrics.get("config_suppress_errors") is True
        config = metrics.get("dynamo_config")
        settings = json_object(config) if isinstance(config, str) else {}
        self.imported.is_of_new_torch |= bool(settings)
        for name, field in (("recompile_limit", "limit"), ("accumulated_recompile_limit", "limit_all")):
            if (value := count_of(settings.get(name))) is not None:
                setattr(self.imported, field, value)

    def unread(self, frame: str, name: str, text: str) -> None:
        """Any other artifact is a stage of the package that wrote it."""
        if text and name not in _NO_STAGES and not name.startswith(("fx_graph_cache", "aotautograd_cache")):
            package = _package(self._writer)
            stage = StageText(name, text, _language(name, text) if package == "torch" else "", frame=frame)
            self.run.stages.add(package, stage, "artifact", of_author=False)


def _whole(frame: Frame) -> tuple[str, str]:
    """The file and the function that a frame is of, or goes on in."""
    part = resumed(frame.function)
    return frame.file, part[0] if part else frame.function


def _with_scope(failed: FailedGuard) -> FailedGuard:
    """Torch leaves out of these texts that a name is of the frame's locals: x for L['x']."""
    local = _LOCAL.match(failed.source) if failed.kind in _OF_VALUES else None
    return replace(failed, source=f"L[{local[1]!r}]{failed.source[local.end() :]}") if local else failed


def _symbol(about: object) -> dict[str, Sym]:
    """The size that a create_symbol record names, with its value and range."""
    if not isinstance(about, dict):
        return {}
    value, bounds = str(about.get("val")), _RANGE.match(str(about.get("vr")))
    low, high = (
        int(each) if each.lstrip("-").isdigit() else None for each in (bounds.groups() if bounds else ("", ""))
    )
    name = str(about["symbol"])
    return {name: Sym(name, int(value) if value.isdigit() else None, low, high)}


def _language(name: str, text: str) -> str:
    """The language of an artifact of torch's, which is quicker than to guess it."""
    if text.startswith(("{", "[")):
        return "json"
    return "python" if name.endswith(("_graph", "_runnable", "_graph_runnable", "_code")) else "text"


def _package(writer: str) -> str:
    """The package that a source file belongs to."""
    inside = writer.rpartition("-packages/")[2]
    package = inside.lstrip("/").partition("/")[0].removesuffix(".py")
    return package if not writer.startswith("/") or "-packages/" in writer else Path(writer).stem
