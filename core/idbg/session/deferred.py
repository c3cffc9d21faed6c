"""Leave the large records of a long log on disk until they are read.

A session with thousands of graphs would take gigabytes of memory. Beyond WHOLE bytes of a log, the graphs, code and
links that are read of it hold their place in the log in place of their nodes and texts. A view reads them as any other:
they are loaded when it does, and the last LOADED bytes of them are held. They are not to be encoded.
"""

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar, cast

from idbg.schema import event_log, events
from idbg.schema.code import Kernel, OutputCode
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, Links, Node

WHOLE = 64 << 20  # bytes of a log that are held in memory, decoded
LOADED = 32 << 20  # bytes of lines whose records are held decoded
LEAST = 2048  # bytes of a line that is left on disk
_Record = TypeVar("_Record")
Load = Callable[[], SessionEvent]


class LogPlaces:
    """The places of records in one log, by a descriptor of it, which is closed with the last of them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self.held = 0
        """Bytes of the lines whose events are in memory."""
        self._loaded: OrderedDict[int, tuple[int, SessionEvent]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def taken(self, event: SessionEvent, begin: int, length: int) -> SessionEvent:
        """The event, which stands there in the log: as it is, or without what is large in it."""
        found = event if begin + length <= WHOLE or length < LEAST else self._deferred(event, begin, length)
        self.held += length if found is event else LEAST
        return found

    def _deferred(self, event: SessionEvent, begin: int, length: int) -> SessionEvent:
        def load() -> SessionEvent:
            return self._load(begin, length)

        match event:
            case events.GraphCaptured():
                graph = _at(GraphInLog(event.graph.id, ()), load)
                return events.GraphCaptured(at=event.at, run=event.run, graph=graph)
            case events.CodeCaptured(code=code):
                kernels = tuple(_kernel(each, number, load) for number, each in enumerate(code.kernels))
                return events.CodeCaptured(
                    at=event.at, run=event.run, code=_at(CodeInLog(code.frame, code.part, "", kernels), load)
                )
            case events.LinksCaptured(links=links):
                there = _at(LinksInLog(links.above, links.below, ()), load)
                return events.LinksCaptured(at=event.at, run=event.run, links=there)
            case _:
                return event

    def _load(self, begin: int, length: int) -> SessionEvent:
        with self._lock:
            if (known := self._loaded.get(begin)) is not None:
                self._loaded.move_to_end(begin)
                return known[1]
        event = event_log.decode(os.pread(self._descriptor, length, begin))
        assert event is not None
        with self._lock:
            self._loaded[begin] = length, event
            self._bytes += length
            while self._bytes > LOADED and len(self._loaded) > 1:
                self._bytes -= self._loaded.popitem(last=False)[1][0]
        return event


def _at(record: _Record, load: Load) -> _Record:
    record.__dict__["load"] = load
    return record


def _kernel(kernel: Kernel, number: int, load: Load) -> Kernel:
    there = KernelInLog(
        frame=kernel.frame,
        part=kernel.part,
        name=kernel.name,
        language=kernel.language,
        line=kernel.line,
        calls=kernel.calls,
    )
    there.__dict__["number"] = number
    return _at(there, load)


class GraphInLog(Graph, frozen=True, dict=True):
    """A graph whose nodes and text are in the log."""

    @property
    def _whole(self) -> Graph:
        return cast("events.GraphCaptured", self.__dict__["load"]()).graph

    @property  # type: ignore[misc]
    def nodes(self) -> tuple[Node, ...]:
        return self._whole.nodes

    @property  # type: ignore[misc]
    def code(self) -> str:
        return self._whole.code

    @property
    def by_name(self) -> dict[str, Node]:
        return self._whole.by_name

    @property
    def users(self) -> dict[str, tuple[str, ...]]:
        return self._whole.users

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Graph) and self.id == other.id and self.nodes == other.nodes)

    def __hash__(self) -> int:
        return hash(self.id)


class LinksInLog(Links, frozen=True, dict=True):
    """Links whose pairs are in the log."""

    @property  # type: ignore[misc]
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return cast("events.LinksCaptured", self.__dict__["load"]()).links.pairs


class CodeInLog(OutputCode, frozen=True, dict=True):
    """Code whose text is in the log."""

    @property  # type: ignore[misc]
    def text(self) -> str:
        return cast("events.CodeCaptured", self.__dict__["load"]()).code.text


class KernelInLog(Kernel, frozen=True, kw_only=True, dict=True):
    """A kernel whose source is in the log."""

    @property  # type: ignore[misc]
    def source(self) -> str:
        code = cast("events.CodeCaptured", self.__dict__["load"]()).code
        number: int = self.__dict__["number"]
        return code.kernels[number].source
