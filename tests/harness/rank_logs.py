"""Sessions of many ranks, replayed from a recorded log with other ids."""

import json
from collections.abc import Callable
from pathlib import Path

from idbg.schema import event_log, events
from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.events import SessionEvent
from idbg.schema.processes import Process
from idbg.schema.programs import Program
from idbg.session import ranks

RECORDINGS = Path(__file__).parents[1] / "recordings"


def session_of_ranks(
    folder: Path,
    size: int,
    recording: str = "mlp_train",
    *,
    numbers: range | None = None,
    calls: int = 3,
    change: Callable[[int, str], str] = lambda rank, text: text,
) -> Path:
    """A session in `folder` with a process a rank, each with `calls` collectives; `change` edits the log of one."""
    folder.mkdir(parents=True)
    text = (RECORDINGS / f"{recording}.jsonl").read_text(encoding="utf-8")
    opened, rest = text.split("\n", 1)
    at = json.loads(opened)["at"]
    main: list[SessionEvent] = [
        events.SessionOpened(version="0", program=Program("train.py"), folder=str(folder), at=at)
    ]
    started: list[SessionEvent] = []
    for rank in numbers or range(size):
        process = Process(
            name=f"rank{rank}", pid=1000 + rank, host=f"host{rank // 8}", rank=rank, world_size=size, started=at
        )
        own = folder / "processes" / process.name
        own.mkdir(parents=True)
        opening = events.SessionOpened(
            version="0", program=Program("train.py"), folder=str(own), process=process, at=at
        )
        *lines, ended = change(rank, rest).rstrip("\n").split("\n")
        seen = event_log.encode(_collectives(size, calls))
        log = b"\n".join([event_log.encode(opening), *(line.encode() for line in lines), seen, ended.encode(), b""])
        (own / "events.jsonl").write_bytes(log)
        started += [
            events.ProcessStarted(process=process, at=at),
            events.ProcessEnded(name=process.name, exit_status=0, at=at + 10),
        ]
    (folder / "events.jsonl").write_bytes(b"".join(event_log.encode(each) + b"\n" for each in (*main, *started)))
    return folder


def write_digests(session: Path) -> None:
    """Write the digest of each rank, as the ranks' launcher does at the job's end."""
    for folder in (session / "processes").iterdir():
        ranks.write(folder)


def _collectives(size: int, calls: int) -> events.CollectivesSeen:
    group = ProcessGroup("0", "default_pg", tuple(range(size)))
    began = [
        Collective(group="0", number=at, op="all_reduce", inputs=("f32[4, 8]",), outputs=("f32[4, 8]",))
        for at in range(1, calls + 1)
    ]
    return events.CollectivesSeen(run=1, began=tuple(began), groups=(group,))
