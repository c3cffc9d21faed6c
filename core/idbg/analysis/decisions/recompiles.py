"""List the compiles of each function, with the guard that failed each time, and how near the limit is."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from idbg.analysis.decisions.break_report import own
from idbg.analysis.decisions.frames import resumed, spoken
from idbg.schema.decisions.dynamo import FailedGuard, FailedKind, FrameGuards, FrameResult
from idbg.schema.graphs import CompileCall, Frame
from idbg.schema.runs import Run

_LOCAL = re.compile(r"""[LG]\[\s*['"](.+?)['"]\s*\]""")
_OF_MODULE = re.compile(r"\._(?:modules|parameters|buffers)\['([^']+)'\]")
_NUMPY = re.compile(r"^___from_numpy\((.*)\)$")
_TENSOR = re.compile(
    r"^check_tensor\((?P<source>.+?), \w+, DispatchKeySet.*?, (?P<dtype>torch\.\w+), .*?"
    r"requires_grad=(?P<requires_grad>\w+), size=\[(?P<size>[^\]]*)\]"
)
_FAR: dict[FailedKind, int] = {"size": 0, "value": 0, "length": 0, "tensor": 2, "type": 3, "state": 3}
_NEAR = 1  # compiles that are left when the limit counts as near


@dataclass(frozen=True)
class CompileRow:
    """One compile of a function, as it stands in its timeline: `number` counts from 0. `reason` is torch's, "" of the
    first; `failed` has the guards for which the versions before did not fit, that of the nearest first. `refused`: it
    was not compiled, as the limit forbade it. `result` is None while it goes on, or where it was not recorded.
    """

    frame: str
    number: int
    reason: str = ""
    failed: tuple[FailedGuard, ...] = ()
    result: FrameResult | None = None
    refused: bool = False

    @property
    def is_broken(self) -> bool:
        """Whether this compile failed."""
        return self.result is not None and self.result.end == "failed"


@dataclass(frozen=True)
class Limit:
    """How many versions of a function there are, and how many there may be by torch's setting of this `name`."""

    name: str
    used: int
    most: int
    hit: bool

    @property
    def words(self) -> str:
        """ "7 of 8: after 1 more its other calls run in eager (recompile_limit)"."""
        if self.hit:
            return f"{self.used} of {self.most}: other calls run in eager, and are not counted ({self.name})"
        left = self.most - self.used
        then = f"after {left} more" if left else "at the next"
        return f"{self.used} of {self.most}: {then}, calls that fit none run in eager ({self.name})"


@dataclass(frozen=True)
class Timeline:
    """All compiles of one function, or of what goes on of it after a break (`resumed`), oldest first. `limit` is there
    where it is near or was hit. `call`: the torch.compile in which it is compiled, where that is known.
    """

    code: str
    function: str
    file: str
    line: int
    compiles: tuple[CompileRow, ...]
    limit: Limit | None = None
    resumed: bool = False
    call: CompileCall | None = None

    @property
    def failed(self) -> tuple[FailedGuard, ...]:
        """Why each version but the first was compiled, or would have been: where that compile failed, nothing is known
        to keep its call from failing.
        """
        return tuple(row.failed[0] for row in self.compiles if row.failed and not row.is_broken)

    @property
    def recompiles(self) -> tuple[CompileRow, ...]:
        """Those after the first."""
        return self.compiles[1:]


def timelines(run: Run) -> list[Timeline]:
    """Of each function that was compiled again, those with most compiles first."""
    reasons = {event.frame: event for event in run.recompiles}
    by_code: dict[tuple[str, str, str, int], list[Frame]] = {}
    results = run.decided.last(FrameResult)
    refused = [name for name in results if name not in run.frames]
    for frame in run.frames.values():
        by_code.setdefault((_code(frame.id), spoken(frame), frame.file, frame.line), []).append(frame)
    found: list[Timeline] = []
    for (code, name, file, line), frames in by_code.items():
        holds = _Holds(run)
        versions = {frame.id for frame in frames}
        compiles = [
            CompileRow(
                frame.id,
                number,
                reasons[frame.id].reason if frame.id in reasons else "",
                nearest_first(_of(versions, reasons[frame.id].failed), holds) if frame.id in reasons else (),
                results.get(frame.id),
            )
            for number, frame in enumerate(frames)
        ]
        for refusal in refused:
            if _code(refusal) == code:
                result = results[refusal]
                failed = nearest_first(_of(versions, result.failed), holds)
                compiles.append(CompileRow(refusal, len(compiles), result.why, failed, result, refused=True))
        if len(compiles) > 1:
            rest = resumed(frames[0].function) is not None
            call = frames[0].call
            found.append(Timeline(code, name, file, line, tuple(compiles), _limit(compiles), rest, call))
    return sorted(found, key=lambda timeline: -len(timeline.compiles))


def _of(versions: Collection[str], failed: Iterable[FailedGuard]) -> tuple[FailedGuard, ...]:
    """Those of these versions: torch's wrapper of a module has the versions of all modules."""
    guards = tuple(failed)
    return tuple(each for each in guards if each.against in versions) or guards


class _Holds:
    """Which guards of a version a call is known to have passed: torch names only the first that failed of each."""

    def __init__(self, run: Run) -> None:
        self._guards = run.decided.last(FrameGuards)
        self._expected: set[tuple[str, str, str, str]] = set()

    def take(self, failed: Iterable[FailedGuard]) -> None:
        """These versions have guards that expect this."""
        self._expected |= {(each.against, each.source, each.what, each.expected) for each in failed}

    def __call__(self, version: str, guard: FailedGuard) -> bool:
        """Whether this version expects what another's guard found."""
        if (version, guard.source, guard.what, guard.actual) in self._expected:
            return True
        guards = self._guards.get(version)
        if guard.kind == "size":
            tensor, dim = tensors_of(guards).get(guard.source), guard.what.partition(" ")[2]
            sizes = tensor["size"].split(", ") if tensor is not None else []
            return bool(dim) and int(dim) < len(sizes) and sizes[int(dim)] in (guard.actual, "None")
        source = f"len({guard.source})" if guard.kind == "length" else guard.source
        code = f"{source} == {guard.actual}"
        return guards is not None and any(code in each.code for each in guards.guards)


def nearest_first(failed: Iterable[FailedGuard], holds: _Holds | None = None) -> tuple[FailedGuard, ...]:
    """The version that differs least from the call tells most: one that passes the guards by which others failed, then
    one that failed by less: another size is less than another dtype. Of those that differ alike the newest, as torch
    lists them.
    """
    guards = tuple(failed)
    if holds is not None:
        holds.take(guards)

    def distance(guard: FailedGuard) -> tuple[int, int, bool]:
        passed = sum(holds(guard.against, each) for each in guards if each is not guard) if holds is not None else 0
        return -passed, _FAR.get(guard.kind, 1), guard.what == "rank"

    return tuple(sorted(guards, key=distance))


Tensors = dict[str, dict[str, str]]
"""The source of each tensor -> its dtype, requires_grad and sizes, as a version's guards have them."""


def tensors_of(guards: FrameGuards | None) -> Tensors:
    """For which tensors this version is; a size that may vary is "None"."""
    codes = (code for guard in guards.guards for code in guard.code) if guards is not None else ()
    return {found["source"]: found.groupdict() for code in codes if (found := _TENSOR.match(code)) is not None}


def varying(timeline: "Timeline", run: Run) -> dict[str, tuple[int, ...]]:
    """The source of each tensor that one version has a fixed size of, and another any size -> these dimensions."""
    found: dict[str, tuple[int, ...]] = {}
    for source, seen in _by_source(timeline, run).items():
        versions = [tensor["size"].split(", ") for tensor in seen]
        alike = [sizes for sizes in versions if len(sizes) == len(versions[0])]
        if dims := tuple(d for d, of in enumerate(zip(*alike, strict=True)) if "None" in of and len(set(of)) > 1):
            found[source] = dims
    return found


def changing(timeline: "Timeline", run: Run, what: str) -> list[str]:
    """The sources of the tensors of which versions have another `what`: "dtype", "requires_grad"."""
    versions = _by_source(timeline, run).items()
    return [source for source, seen in versions if len({tensor.get(what) for tensor in seen}) > 1]


def _by_source(timeline: "Timeline", run: Run) -> dict[str, list[dict[str, str]]]:
    seen: dict[str, list[dict[str, str]]] = {}
    if guards := run.decided.last(FrameGuards):
        for row in timeline.compiles:
            for source, tensor in tensors_of(guards.get(row.frame)).items():
                seen.setdefault(source, []).append(tensor)
    return seen


def shown(source: str) -> str:
    """A guard's source as the user writes it: "x" of "L['x']", "self.a.weight" of a parameter in a module's dicts."""
    return _OF_MODULE.sub(_member, _LOCAL.sub(_inside, _NUMPY.sub(_inside, source)))


def _inside(found: re.Match[str]) -> str:
    return found[1]


def _member(found: re.Match[str]) -> str:
    return f".{found[1]}" if found[1].isidentifier() else f"[{found[1]}]"


def place_of(run: Run, failed: FailedGuard) -> tuple[str, int]:
    """The user's line that caused a guard, from torch's message of its failure or, of a tensor, of the guard."""
    line = own(failed.stack)
    if line is not None:
        return line.file, line.line
    guards = run.decided.last(FrameGuards).get(failed.against)
    for guard in guards.guards if guards is not None else ():
        if guard.source == failed.source and guard.file:
            return guard.file, guard.line
    return failed.file, failed.line


def _code(frame: str) -> str:
    """ "0" of "0/1", "0#2" of "0/1#2"."""
    number, _, reset = frame.partition("#")
    return number.rpartition("/")[0] + (f"#{reset}" if reset else "")


def _limit(compiles: Iterable[CompileRow]) -> Limit | None:
    known = [each for each in compiles if each.result is not None]
    hit = next((each.result for each in known if each.refused), None)
    counts = [each.result for each in known if each.result is not None and each.result.alike is not None]
    if not counts and hit is None:
        return None
    last = counts[-1] if counts else None
    for name, used, most in _counts(last, hit):
        if most and ((hit is not None and name in hit.why) or (1 < used >= most - _NEAR)):
            return Limit(name, used, most, hit=hit is not None)
    return None


def _counts(last: FrameResult | None, hit: FrameResult | None) -> list[tuple[str, int, int]]:
    of = hit or last
    assert of is not None
    alike, entries = (last.alike or 0, last.entries or 0) if last is not None else (0, 0)
    return [
        ("recompile_limit", alike, of.limit or 0),
        ("accumulated_recompile_limit", entries, of.limit_all or 0),
    ]
