"""Record the collectives that a rank begins, and where its main thread is while it waits in one.

A thread reads torch's flight recorder: nothing of the program's is wrapped. It takes at most a fiftieth of the time.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from idbg.analysis.ranks.digest import is_library
from idbg.engine.compat import flight_recorder
from idbg.engine.compat.flight_recorder import Counted, Entry
from idbg.schema import events
from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.decisions.dynamo import Stack, StackLine
from idbg.traces.frame import Emit

INTERVAL = 0.5
"""Seconds between two looks at the recorder."""
_SHARE = 50  # a look is followed by so many times its own duration without one
MOST_RECORDED = 4000
"""Collectives of a run that are recorded; of later ones the last of each group."""
_LONGEST_SILENCE = 60.0  # seconds after which a rank that waits reports its line again
_MOST_STACK = 40
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@contextmanager
def recorded(run: int, emit: Emit) -> Iterator[None]:
    """While it lasts, collectives of this process become events of the run."""
    watch = _Watch(run, emit)
    watch.start()
    try:
        yield
    finally:
        watch.stop()


class _Watch:
    """What was seen of the recorder so far."""

    def __init__(self, run: int, emit: Emit) -> None:
        self.run, self.emit = run, emit
        self._ended = threading.Event()
        self._seen: dict[str, int] = {}  # recorder -> the last id
        self._groups: set[str] = set()
        self._pending: tuple[Collective, ...] = ()
        self._counts: dict[str, int] = {}  # of groups whose collectives are not recorded
        self._waiting: set[tuple[str, int]] = set()
        self._timed_out: list[Entry] = []
        self._count = 0
        self._silent_until = 0.0
        self._silence = 1.0
        self._thread = threading.Thread(target=self._watch, name="idbg collectives", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Look once more, and end."""
        self._ended.set()
        self._thread.join(timeout=10 * INTERVAL)
        if not self._thread.is_alive():
            self._look()

    def _watch(self) -> None:
        pause = INTERVAL
        while not self._ended.wait(pause):
            began = time.monotonic()
            self._look()
            pause = max(INTERVAL, _SHARE * (time.monotonic() - began))

    def _look(self) -> None:
        """One event, if there is something new, or a rank waits for long."""
        found = flight_recorder.read()
        new = [each for each in found.entries if each.id > self._seen.get(each.recorder, -1)]
        lost = self._gaps(new)
        self._keep_timed_out(found.entries)
        waiting = [each for each in found.entries if not each.ended]
        self._waiting = {(each.recorder, each.id) for each in waiting}
        pending = tuple(map(_collective, (*self._timed_out, *waiting)))
        counts = {each.group: each.number for each in found.counted} if not self._seen else {}
        now = time.monotonic()
        if new or pending != self._pending or counts != self._counts:
            self._silence = 1.0
        elif not (self._seen or counts) or now < self._silent_until:
            return
        self._silent_until = now + self._silence
        self._silence = min(2 * self._silence, _LONGEST_SILENCE)
        self._pending, self._counts = pending, counts
        room = max(0, MOST_RECORDED - self._count)
        self._count += len(new)
        last = {each.group: _collective(each) for each in new[room:] if not each.peer_to_peer}
        self.emit(
            events.CollectivesSeen(
                run=self.run,
                began=tuple(map(_collective, new[:room])),
                groups=tuple(self._new_groups([*new, *found.counted], found.ranks)),
                pending=pending,
                last=tuple(last.values()),
                lost=lost + len(new[room:]),
                counts=counts,
                stack=_main_stack(),
            )
        )

    def _keep_timed_out(self, entries: list[Entry]) -> None:
        """What was waited for until its timeout is pending for good: for gloo it looks as if it completed."""
        now = time.time()
        for each in entries:
            if each.ended and (each.recorder, each.id) in self._waiting and now - each.began >= each.timeout > 0:
                self._timed_out.append(each)

    def _gaps(self, new: list[Entry]) -> int:
        """How many entries were overwritten since the last look."""
        lost = 0
        for each in sorted(new, key=lambda each: each.id):
            lost += max(0, each.id - self._seen.get(each.recorder, -1) - 1)
            self._seen[each.recorder] = each.id
        return lost

    def _new_groups(self, new: list[Entry | Counted], ranks: Mapping[str, tuple[int, ...]]) -> Iterator[ProcessGroup]:
        for each in new:
            if each.group not in self._groups:
                self._groups.add(each.group)
                yield ProcessGroup(each.group, each.about, ranks.get(each.group, ()))


def _collective(entry: Entry) -> Collective:
    file, line, function = next((frame for frame in entry.frames if not _is_foreign(frame[0])), ("", 0, ""))
    return Collective(
        group=entry.group,
        number=entry.number,
        op=entry.op,
        inputs=entry.inputs,
        outputs=entry.outputs,
        file=file,
        line=line,
        function=function,
        began=entry.began,
        peer_to_peer=entry.peer_to_peer,
        peer=entry.peer,
    )


def _is_foreign(file: str) -> bool:
    """Whether a file is of a library, of ours, or code that Inductor wrote."""
    return is_library(file) or file.startswith(_OURS) or "torchinductor" in file


def _main_stack() -> Stack:
    """Where the main thread is now, the innermost line last, without the frames of libraries."""
    main = threading.main_thread().ident
    frame: FrameType | None = sys._current_frames().get(main) if main is not None else None
    lines: list[StackLine] = []
    while frame is not None and len(lines) < _MOST_STACK:
        code = frame.f_code
        if not _is_foreign(code.co_filename):
            lines.append(StackLine(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(reversed(lines))
