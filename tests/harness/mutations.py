"""Mutate real files of every kind that idbg reads, by a seed, and read the result as a user would."""

import bz2
import gzip
import hashlib
import io
import json
import random
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path

from idbg import views
from idbg.accelerators.parse import parse
from idbg.config import settings
from idbg.render.text import lines
from idbg.reports import decisions, text
from idbg.reports.documents import SessionData, html
from idbg.schema.errors import IdbgError
from idbg.schema.runs import History, fold
from idbg.session import files, index, merging, processes, ranks, reading, removal, summaries
from idbg.session.importing import Import, imported_before
from idbg.traces.stream import is_trace
from idbg.views import diagnostics
from tests.harness.traces import RECORDED

Files = dict[str, bytes]
RECORDINGS = RECORDED.parent
MOST_BYTES = 1 << 30
"""Memory that reading one file may take beyond what the process has."""
LOG = "dedicated_log_torch_trace_{}x1.log"
_RECORD = re.compile(rb"^(?=V\d{4} )", re.MULTILINE)
_HASH = re.compile(rb'("has_payload": ")[0-9a-f]{32}')
_NUMBER = re.compile(rb"(?<![\w.\"])-?\d+(?:\.\d+)?(?![\w.\"])")
_VALUE = re.compile(rb'(?<=: )(?:"[^"\\]*"|-?\d+(?:\.\d+)?|true|false|null|\[\]|\{\})|(?<=":)(?:"[^"\\]*"|-?\d+)')
_NUMBERS = (b"0", b"-1", b"1e999", b"NaN", b"-Infinity", b"true", b"1e308", b"9223372036854775808", b"null", b"0.5")
_VALUES = (b"5", b"[]", b"{}", b"null", b"true", b'""', b'"\xc3\xa9\\u0000"', b'["a"]', b"1e999", b'{"a": [1]}')
_LONG = 300_000  # bytes


@cache
def samples(kind: str) -> Mapping[str, bytes]:
    """Small real files of this kind, by their paths below a folder."""
    return KINDS[kind]()


def _trace(name: str = "breaking-2.15", rank: str = "", most: int = 6_000, each: int = 2) -> Files:
    """The first records of each kind, as they follow one another."""
    (packed, *_) = sorted((RECORDED / name).glob(f"*_{rank}*.log.gz"))
    found: dict[bytes, int] = {}
    kept = []
    for record in _RECORD.split(gzip.decompress(packed.read_bytes())):
        about = re.search(rb'\{"(\w+)": (?:\{"name": "(\w+)")?', record)
        what = b"%b %b" % (about[1], about[2] or b"") if about else b""
        if len(record) <= most and found.get(what, 0) < each:
            found[what] = found.get(what, 0) + 1
            kept.append(record)
    return {LOG.format(rank): b"".join(kept)}


def _ranks() -> Files:
    return {**_trace("ranks-2.15", "rank_0_", each=1), **_trace("ranks-2.15", "rank_1_", each=1)}


def _dumps() -> Files:
    with tarfile.open(RECORDED / "debug-2.15" / "torch_compile_debug.tar.gz") as tar:
        held = {info.name: tar.extractfile(info) for info in tar if info.isfile() and info.size < 12_000}
        files = {name: file.read() for name, file in held.items() if file is not None and "/tlparse/" not in name}
    return dict(list(files.items())[:12])


def _triton() -> Files:
    (packed,) = (RECORDINGS / "tritonparse").iterdir()
    events = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
    return {"triton.ndjson": b"".join(events[:1] + events[-2:])}


def _session(name: str = "breaking", log: str = "s/events.jsonl") -> Files:
    """The first events of each type, none of them long."""
    found: dict[str, int] = {}
    kept = []
    for line in (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines(keepends=True):
        type_ = json.loads(line)["type"]
        if len(line) < 20_000 and found.get(type_, 0) < 2:
            found[type_] = found.get(type_, 0) + 1
            kept.append(line)
    return {log: b"".join(kept)}


def _job() -> Files:
    return {
        **_session("resnet"),
        **_session("breaking", "s/processes/rank0/events.jsonl"),
        **_session("mlp_train", "s/processes/rank1/events.jsonl"),
        "s/summary.json": b'{"log_bytes": 5, "summary": {"folder": "x", "name": "y", "started": 1.5}, "format": 4}',
        "s/processes/rank1/digest.json": b'{"name": "rank1", "rank": 1, "format": 2, "log_bytes": 3}',
    }


def _settings() -> Files:
    content = b'output = "x"\nkeep_sessions = 5\nkeep_size = "2 GiB"\nkeep_days = 1.5\n[options]\nmax_autotune = true\n'
    preset = Path(settings.__file__).parents[1] / "accelerators" / "presets" / "ethos_u55.toml"
    return {"settings.toml": content, "accelerator.toml": preset.read_bytes()}


KINDS: dict[str, Callable[[], Files]] = {
    "trace": _trace,
    "old trace": lambda: _trace("breaking-2.6"),
    "failing trace": lambda: _trace("failing-2.15"),
    "aotinductor": lambda: _trace("exported-2.15"),
    "ranks": _ranks,
    "dumps": _dumps,
    "tritonparse": _triton,
    "session": _session,
    "comparison": lambda: _session("planted"),
    "benchmark": lambda: _session("benched"),
    "job": _job,
    "settings": _settings,
}


class Mutation:
    """What is done to the files of one kind for one seed; `steps` says it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.steps: list[str] = []

    def __str__(self) -> str:
        return f"seed {self.seed}: {', '.join(self.steps)}"

    def place(self, folder: Path) -> tuple[str, Path]:
        """Write the mutated files into this folder, packed or not. Returns their kind, and what is to be read."""
        kind = self.random.choice([*KINDS, "trace", "ranks", "dumps", "tritonparse"])
        files = dict(samples(kind))
        self.steps.append(kind)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            name = self.random.choice(sorted(files))
            change = self.random.choice(CHANGES)
            self.steps.append(f"{change.__name__.strip('_')} in {name}")
            files[name] = change(self.random, files[name])
            if is_trace(files[name][:500]) and self.random.random() < 0.8:
                files[name] = _with_hashes(files[name])
        pack = self.random.choice(PACKS) if kind not in ("settings",) and self.random.random() < 0.35 else None
        if pack is not None:
            suffix, content = pack(self.random, files)
            self.steps.append(f"packed as {suffix}")
            if self.random.random() < 0.6:
                change = self.random.choice(BYTE_CHANGES)
                self.steps.append(f"{change.__name__.strip('_')} in the archive")
                content = change(self.random, content)
            (folder / f"night{suffix}").write_bytes(content)
            return f"packed {kind}", folder / f"night{suffix}"
        for name, content in files.items():
            path = folder / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return kind, folder / "in"


def _with_hashes(trace: bytes) -> bytes:
    """The trace with the checksums that its payloads have now: else they are left out, and nothing else is tried."""
    records = []
    for record in _RECORD.split(trace):
        head, _, below = record.partition(b"\n")
        payload = below.removesuffix(b"\n").removeprefix(b"\t").replace(b"\n\t", b"\n")
        digest = hashlib.md5(payload, usedforsecurity=False).hexdigest().encode()
        records.append(_HASH.sub(rb"\g<1>" + digest, head) + record[len(head) :])
    return b"".join(records)


Change = Callable[[random.Random, bytes], bytes]


def _flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 3, 30))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, data: bytes) -> bytes:
    begin, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    return data[:begin] if rng.random() < 0.5 else data[:begin] + data[end:]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice((rng.randbytes(40), b"\0" * 600, b"\xff\xfe", b"\n\n", b"[" * 3000)) + data[at:]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    piece = data[at : at + rng.choice((1, 40, 2000))]
    return data[:at] + piece * (_LONG // max(len(piece), 1)) + data[at:]


def _one_of(pattern: "re.Pattern[bytes]", rng: random.Random, data: bytes, values: tuple[bytes, ...]) -> bytes:
    found = list(pattern.finditer(data))
    for match in sorted(rng.sample(found, min(len(found), rng.choice((1, 5)))), key=lambda each: -each.start()):
        data = data[: match.start()] + rng.choice(values) + data[match.end() :]
    return data


def _number(rng: random.Random, data: bytes) -> bytes:
    return _one_of(_NUMBER, rng, data, (*_NUMBERS, b"9" * rng.choice((19, 30, 400, 5000))))


def _type(rng: random.Random, data: bytes) -> bytes:
    return _one_of(_VALUE, rng, data, (*_VALUES, b'"' + b"x" * _LONG + b'"', b"[" * 2000 + b"]" * 2000))


def _line_ends(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"", b"\n\n", b" \n", b"\n\t", b"\x0b", b"\xe2\x80\xa8")))


def _order(rng: random.Random, data: bytes) -> bytes:
    parts = _RECORD.split(data) if is_trace(data[:500]) else data.splitlines(keepends=True)
    if rng.random() < 0.5:
        rng.shuffle(parts)
    elif len(parts) > 1:
        for one, other in list(pairwise(range(len(parts))))[:: rng.choice((1, 2, 7))]:
            parts[one], parts[other] = parts[other], parts[one]
    return b"".join(parts[: rng.choice((len(parts), len(parts) // 2 + 1))])


BYTE_CHANGES: tuple[Change, ...] = (_flip, _cut, _insert, _repeat)
CHANGES: tuple[Change, ...] = (*BYTE_CHANGES, _number, _number, _type, _type, _line_ends, _order)


def _name(rng: random.Random, name: str) -> str:
    return rng.choice(
        (name,) * 12 + (f"../{name}", f"/{name}", "x" * 300, "é\udcff.log", "a\\b.log", "in/" * 60 + "x.log")
    )


def _zip(rng: random.Random, files: Files) -> tuple[str, bytes]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as zipped:
        named = {_name(rng, name).encode("utf-8", "replace").decode(): content for name, content in files.items()}
        for name, content in named.items():
            zipped.writestr(name, content)
    return ".zip", packed.getvalue()


def _tar(rng: random.Random, files: Files) -> tuple[str, bytes]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=rng.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))) as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(_name(rng, name))
            info.size = len(content)
            info.type = rng.choice((tarfile.REGTYPE,) * 12 + (tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE))
            tar.addfile(info, io.BytesIO(content))
    suffix, squeeze = rng.choice(((".tar", bytes), (".tar.gz", gzip.compress), (".tar.bz2", bz2.compress)))
    return suffix, squeeze(packed.getvalue())


def _gzip(rng: random.Random, files: Files) -> tuple[str, bytes]:
    name = rng.choice(sorted(files))
    return f"{'.ndjson' if name.endswith('.ndjson') else '.log'}.gz", gzip.compress(files[name])


PACKS: tuple[Callable[[random.Random, Files], tuple[str, bytes]], ...] = (_zip, _tar, _gzip)


def read_all(kind: str, place: Path, output: Path) -> str:
    """Read it by every way that there is for its kind. Returns what came of it; only IdbgError is an answer."""
    try:
        if kind == "settings":
            return _read_settings(place)
        if kind.startswith("packed ") and kind.removeprefix("packed ") in ("session", "job", "comparison", "benchmark"):
            with merging.unpacked(place, output) as (session, _):
                return _read_session(session)
        if kind in ("session", "job", "comparison", "benchmark"):
            index.sessions(place)
            return _read_session(place / "s")
        return _import(place, output)
    except IdbgError as error:
        return f"refused: {error.message[:80]}"


def _read_settings(place: Path) -> str:
    with suppress(IdbgError):
        settings.load({"IDBG_SETTINGS": str(place / "settings.toml")}, cwd=place)
    parse((place / "accelerator.toml").read_text(errors="replace"))
    return "read"


def _import(place: Path, output: Path) -> str:
    try:
        importing = Import(place, output)
        importing.read()
        assert imported_before(place, output, "") == importing.folder
        return _read_session(importing.folder)
    finally:
        for folder in sorted(output.iterdir()) if output.is_dir() else ():
            removal.remove(folder)
        assert not output.is_dir() or not list(output.iterdir()), "a folder stays"


def _read_session(folder: Path) -> str:
    found = [folder, *(folder / processes.FOLDER / name for name in processes.names(folder))]
    for each in found:
        summaries.current(each)
        if each == folder or files.is_session(each):
            _show(fold(reading.load(each)), each)
    history = fold(reading.load(folder))
    history.ranks = ranks.of_session(folder)
    _show(history, folder)
    return f"read: {history.verdict}, {len(history.missing)} missing"


def _show(history: History, folder: Path) -> None:
    """Write it in each form."""
    for run in history.runs.values():
        text.run_report(run)
        decisions.as_json("summary", run)
        diagnostics.diagnostics(run)
        for name in decisions.VIEWS:
            list(lines(decisions.section(name, run)))
            decisions.as_json(name, run)
            views.count(decisions.VIEWS[name], run)
    html.render(SessionData(folder.name, history))


def clear(*folders: Path) -> None:
    """Remove what was placed."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
