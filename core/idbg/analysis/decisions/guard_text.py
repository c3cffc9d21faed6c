"""Read the guards of a frame from torch's printed tree of guard managers.

+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state()
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=0)
| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, ...)    # return x + 1  # train.py:5 in step
Guard latency = 1.42 us
"""

import re

from idbg.schema.decisions.dynamo import FrameGuards, Guard

MOST = 10_000  # guards of one frame; more are only counted
_LINE = re.compile(r"^((?:\| )*)\+- (\w+)(?:: (.*))?$")
_SOURCE = re.compile(r"^source=(.*?), accessed_by=")
_PLACE = re.compile(r"# (\S+):(\d+) in ")
_LATENCY = re.compile(r"^Guard latency = ([\d.]+) us", re.MULTILINE)
_OF_SIZE = re.compile(r"\.(size|stride|storage_offset)\(\)")
_LOCAL = re.compile(r"[LG]\['\w+'\]")


def read_guards(text: str, frame: str) -> FrameGuards:
    """The guards that torch printed for this frame. No guard was measured alone; `cold` is torch's own measurement."""
    guards: list[Guard] = []
    sources: list[str] = []  # of the managers around the line, by depth
    dropped = 0
    for line in text.splitlines():
        if (found := _LINE.match(line)) is None:
            continue
        depth, name, rest = len(found[1]) // 2, found[2], found[3] or ""
        del sources[depth:]
        if name.endswith("Manager"):
            source = _SOURCE.match(rest)
            sources += [""] * (depth - len(sources)) + [source[1] if source else ""]
        elif len(guards) < MOST:
            guards.append(_guard(name, rest, sources[-1] if sources else ""))
        else:
            dropped += 1
    latency = _LATENCY.search(text)
    cold = float(latency[1]) / 1e6 if latency else None
    return FrameGuards(frame=frame, guards=tuple(guards), cold=cold, dropped=dropped)


def _guard(kind: str, text: str, source: str) -> Guard:
    code = text.partition("  # ")[0].rstrip()
    place = _PLACE.search(text)
    if kind == "LAMBDA_GUARD" and _OF_SIZE.search(code):
        kind = "SHAPE_ENV"
    if not source and len(about := set(_LOCAL.findall(code))) == 1:
        source = about.pop()
    file, line = (place[1], int(place[2])) if place else ("", 0)
    return Guard(kind=kind, source=source, code=(code,), file=file, line=line)
