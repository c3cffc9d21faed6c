"""Nest the timed parts of a run's compiles: spans by thread, with those that are too short only counted."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from idbg.schema.decisions.inductor import Span
from idbg.traces.records import Timed

SHORT = 0.001  # seconds: most of a compile's hundreds of spans are shorter, and together they are 1 % of it
LIMIT = 10_000  # spans of a run; beyond it only the outermost are counted


@dataclass(slots=True, eq=False)
class OpenSpan:
    """A span that is running. `hidden`: it is beyond the limit, or its parent is. `short`: its children that are too
    short to be emitted, by name: when the first began, their seconds, how many, and the subject of the last. `size`
    counts the nodes of the graph that a pass changes.
    """

    id: int
    name: str
    what: str
    began: float
    frame: str  # torch's compile id
    thread: int
    parent: "OpenSpan | None"
    size: Callable[[], int] | None
    nodes: int
    emitted: bool = False
    gone: bool = False  # over, and not emitted
    hidden: bool = False
    short: dict[str, tuple[float, float, int, str]] = field(default_factory=dict)


class SpanStacks:
    """The spans of a run by thread; `pending` are those to be emitted. `main`: whose spans those of other threads
    belong to. `named` gives the session's name of a frame.
    """

    def __init__(self, main: Hashable, named: Callable[[str], str]) -> None:
        self.stacks: dict[Hashable, list[OpenSpan]] = {main: []}
        self.pending: dict[int, Span] = {}
        self._main = self.stacks[main]
        self._numbers: dict[Hashable, int] = {main: 0}
        self._named = named
        self._last_id = 0

    @property
    def has_begun(self) -> bool:
        """Whether there was any."""
        return self._last_id > 0

    def begin(self, frame: str, part: Timed, thread: Hashable, size: Callable[[], int] | None = None) -> None:
        """A span begins on this thread."""
        stack = self.stacks.setdefault(thread, [])
        self._numbers.setdefault(thread, len(self._numbers))
        parent = stack[-1] if stack else self._main[-1] if self._main and stack is not self._main else None
        stack.append(self._new(frame, part, self._numbers[thread], parent, size))

    def begin_apart(self, part: Timed) -> OpenSpan:
        """A span begins in a process of a pool: it is unknown which."""
        parent = self._main[-1] if self._main else None
        return self._new("", part, len(self._numbers) + self._last_id + 1, parent, None)

    def end(self, part: Timed, thread: Hashable) -> None:
        """A span that began before the recording is unknown; spans inside of one that ends are over too."""
        stack = self.stacks.get(thread, [])
        if not any(span.name == part.name for span in stack):
            return
        while stack:
            span = stack.pop()
            self.close(span, part.at)
            if span.name == part.name:
                return

    def _new(
        self, frame: str, part: Timed, number: int, parent: OpenSpan | None, size: Callable[[], int] | None
    ) -> OpenSpan:
        self._last_id += 1
        return OpenSpan(
            id=self._last_id,
            name=part.name,
            what=part.what,
            began=part.at,
            frame=frame or (parent.frame if parent else ""),
            thread=number,
            parent=parent,
            size=size,
            nodes=size() if size is not None else 0,
            hidden=self._last_id > LIMIT or (parent is not None and parent.hidden),
        )

    def close(self, span: OpenSpan, at: float) -> None:
        """The span is over."""
        seconds = max(at - span.began, 0.0)
        nodes = (span.nodes, span.size()) if span.size is not None else None
        changed = nodes is not None and nodes[0] != nodes[1]
        span.size = None
        if not span.emitted and (span.hidden or (seconds < SHORT and not changed)):
            self._count(span, seconds)
            return
        self.put(span, seconds, nodes)
        for name, (began, total, times, what) in span.short.items():
            self._last_id += 1
            self.pending[self._last_id] = Span(
                id=self._last_id,
                parent=span.id,
                name=name,
                what=what if times == 1 else "",
                began=began,
                seconds=total,
                frame=self._named(span.frame),
                thread=span.thread,
                times=times,
            )

    def _count(self, span: OpenSpan, seconds: float) -> None:
        """Count a span that is too short, or beyond the limit, in its parent, unless that is hidden too."""
        span.gone = True
        if span.parent is None or (span.hidden and span.parent.hidden):
            return
        began, total, times, _ = span.parent.short.get(span.name, (span.began, 0.0, 0, ""))
        span.parent.short[span.name] = began, total + seconds, times + 1, span.what

    def put(self, span: OpenSpan, seconds: float | None, nodes: tuple[int, int] | None = None) -> None:
        """Emit a span with the next ones; one that runs has no seconds."""
        parent = span.parent
        while parent is not None and parent.gone:
            parent = parent.parent
        if parent is not None and not parent.emitted:
            self.put(parent, None)
        span.emitted = True
        self.pending[span.id] = Span(
            id=span.id,
            name=span.name,
            what=span.what,
            began=span.began,
            parent=parent.id if parent is not None else 0,
            seconds=seconds,
            frame=self._named(span.frame) if span.frame else "",
            nodes=nodes,
            thread=span.thread,
        )

    def taken(self) -> tuple[Span, ...]:
        """The spans to emit now."""
        spans, self.pending = tuple(self.pending.values()), {}
        return spans
