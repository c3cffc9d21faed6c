"""Run real programs plain, under `idbg run` and under `idbg diff --per-kernel`: `python -m tools.compatibility`.

    python -m tools.compatibility [--device cuda] [--only PATTERN ...] [--jobs N] [--json FILE]
    python -m tools.compatibility --write [FILE ...]

The first runs tests/real_programs and writes what it measured to FILE after each program. The second runs nothing: it
merges such files into tests/real_programs/results, from which docs/compatibility.md has its tables.
"""

import argparse
import datetime
import fnmatch
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from idbg.format.amounts import size
from idbg.whole_file import write_whole

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "real_programs"
RESULTS = FOLDER / "results"
PROGRAMS = (
    "trainer.py",
    "trainer.py dropout",
    "trainer.py padded",
    "trainer.py bf16",
    "generate.py",
    "generate.py static",
    "lora.py",
    "lora.py dropout",
    "accelerated.py",
    "lightning_module.py",
    "graph_network.py",
    "timm_scaler.py",
    "mixture.py",
    "reduce_overhead.py",
    "max_autotune.py",
    "flex.py",
    "nested.py",
    "adam.py",
    "dropout.py",
    "quantized.py",
    "detection.py",
    "imported.py",
)
"""The files with their arguments, the most important first; the models follow."""
PACKAGES = (
    *("torch", "triton", "transformers", "peft", "accelerate", "lightning"),
    *("torch_geometric", "timm", "torchao", "torchvision"),
)


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a program; `processor_seconds` and `resident_bytes` are those of all its processes."""

    status: int
    seconds: float
    processor_seconds: float
    resident_bytes: int
    device_bytes: int = 0
    graphs: int | None = None
    breaks: int | None = None
    same_output: bool = True
    verdict: str = ""
    note: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A program's three runs; those that are missing were not run, for the reason in `note`."""

    plain: Ran | None = None
    run: Ran | None = None
    diff: Ran | None = None
    note: str = ""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one device; each keeps its own date, machine and versions."""

    device: str
    made: dict[str, str]
    rows: dict[str, Row]


def models() -> list[str]:
    """The rows of models.py, whose names are read without torch."""
    text = (FOLDER / "models.py").read_text()
    timm = re.search(r"^TIMM = \((.*)\)$", text, re.MULTILINE)
    names = [*re.findall(r'^    "(\w+)": \(', text, re.MULTILINE), *re.findall(r"\w+", timm[1] if timm else "")]
    return [f"models.py {name}" for name in names]


def run(command: Sequence[str], folder: Path, environ: dict[str, str], limit: float) -> tuple[Ran, str, str]:
    """Run a command; also what it wrote to its output and to its error output."""
    began = time.monotonic()
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=err, start_new_session=True)
        timer = threading.Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    ran = Ran(
        status=process.returncode,
        seconds=time.monotonic() - began,
        processor_seconds=used.ru_utime + used.ru_stime,
        resident_bytes=used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        note=f"stopped after {limit:.0f} s" if process.returncode == -signal.SIGKILL else "",
    )
    texts = [(folder / name).read_text(errors="replace") for name in ("out", "err")]
    return ran, texts[0], texts[1]


def lacking(lines: Sequence[str], text: str) -> str | None:
    """The first of the lines that the text has not, in order; others may stand between them."""
    rest = iter(text.splitlines())
    return next((line for line in lines if not any(line == other for other in rest)), None)


def last_line(text: str) -> str:
    """What an error output ends with."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:300]


def loaded(text: str) -> dict[str, Any]:
    """What a command wrote as JSON; nothing where it failed before it did."""
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return found


def sentence(report: dict[str, Any]) -> str:
    """Why a comparison did not pass."""
    if report.get("verdict") == "passed":
        return ""
    failed = [each["name"] for each in [*report.get("outputs", ()), *report.get("gradients", ())] if not each["passed"]]
    causes = (report.get("failure") or {}).get("message", ""), report.get("not_comparable"), report.get("not_judged")
    reasons = [*(cause for cause in causes if cause), report.get("blame") or "", ", ".join(failed[:3])]
    return "; ".join(reason for reason in reasons if reason)[:400]


def measure(program: str, device: str, limit: float = 300, threads: int = 1, cache: Path | None = None) -> Row:
    """Run a program three ways, each in processes and with a cache of its own, which begins as a copy of `cache`."""
    file, *arguments = program.split()
    paths = [str(ROOT / "core"), str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "REAL_PROGRAMS_DEVICE": device,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": str(threads),
    }
    if device == "cpu":
        environ["CUDA_VISIBLE_DEVICES"] = ""
    script = [str(FOLDER / file), *(["--", *arguments] if arguments else [])]
    idbg = [sys.executable, "-m", "idbg"]
    commands = {
        "plain": [sys.executable, str(FOLDER / file), *arguments],
        "run": [*idbg, "run", "--json", *script],
        "diff": [*idbg, "diff", "--per-kernel", "--json", *script],
    }
    rows: dict[str, Ran] = {}
    lines: list[str] = []
    for way, command in commands.items():
        with tempfile.TemporaryDirectory(prefix="idbg-real-") as name:
            folder = Path(name)
            ours = {**environ, "REAL_PROGRAMS_COUNTS": str(folder / "counts.json")}
            ours["TORCHINDUCTOR_CACHE_DIR"] = ours["TRITON_CACHE_DIR"] = str(folder / "cache")
            if cache:
                shutil.copytree(cache, folder / "cache")
            ran, out, err = run(command, folder, ours, limit)
            counted = loaded((folder / "counts.json").read_text()) if (folder / "counts.json").exists() else {}
        figures = {key: counted[key] for key in ("graphs", "breaks", "device_bytes") if key in counted}
        report = {} if way == "plain" else loaded(out)
        if way == "plain":
            lines = out.splitlines()
            if ran.status:
                missing = re.search(r"No module named '(\w+)", last_line(err))
                return Row(
                    note=f"{missing[1]} is not installed" if missing else f"fails without idbg: {last_line(err)}"
                )
        failed = not report and way != "plain"  # a crash: it wrote no JSON
        printed = report.get("output", err if way == "diff" else out)
        missing_line = lacking(lines, printed)
        other = f"plain alone prints {missing_line!r}" if missing_line is not None else ""
        rows[way] = msgspec.structs.replace(
            ran,
            **figures,
            same_output=missing_line is None and (bool(counted) or not lines),
            verdict=report.get("verdict", ""),
            note="; ".join(filter(None, (ran.note or (last_line(err) if failed else note(way, report)), other))),
        )
    return Row(plain=rows["plain"], run=rows["run"], diff=rows["diff"])


def note(way: str, report: dict[str, Any]) -> str:
    """How many graph breaks `idbg run` lists, or why a comparison did not pass; else what was written instead."""
    if way == "diff" and "verdict" in report:
        return sentence(report)
    return f"lists {len(report['breaks'])} graph breaks" if "breaks" in report else str(report or "")[:300]


def checked_instructions(folder: Path) -> Path:
    """A cache with what Inductor finds out about the processor: it costs each process as much as a small program."""
    check = "from torch._inductor import cpu_vec_isa; cpu_vec_isa.pick_vec_isa()"
    subprocess.run(
        [sys.executable, "-c", check], env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder)}, check=False
    )
    return folder


def machine(device: str) -> dict[str, str]:
    """What results depend on: processor or GPU, versions, the day."""
    found = {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if device == "cuda":
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        name = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split("\n")[0]
    else:
        text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        name = next(iter(re.findall(r"model name\s*: (.*)", text)), platform.machine())
    return {**found, "machine": f"{name.strip()}, {os.cpu_count()} processors"}


def stored(file: Path) -> Results | None:
    """Results of a file, where there is one."""
    return msgspec.json.decode(file.read_bytes(), type=Results) if file.exists() else None


def store(results: Results, file: Path) -> None:
    """Merge results into a file: rows that were measured again replace those of before."""
    before = stored(file)
    rows = {**(before.rows if before else {}), **results.rows}
    order = [*PROGRAMS, *models()]
    merged = Results(
        device=results.device,
        made=results.made,
        rows={name: rows[name] for name in order if name in rows},
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, msgspec.json.format(msgspec.json.encode(merged), indent=1) + b"\n")


def ratios(row: Row, figure: str) -> str:
    """A figure of `idbg run` and of `idbg diff`, as multiples of the plain run's."""
    plain = getattr(row.plain, figure)
    return ", ".join(f"{getattr(each, figure) / plain:.1f}" if each and plain else "-" for each in (row.run, row.diff))


def cells(name: str, row: Row, device: str) -> list[str]:
    """A row of the table."""
    assert row.note or row.plain, name
    program = f"`{name.replace('models.py ', '')}`"
    if not (row.plain and row.run and row.diff):
        return [program, row.note, "", "", "", "", ""]
    ways = {"run": row.run, "diff": row.diff}
    changed = [f"differs under `{way}`" for way, each in ways.items() if not each.same_output]
    changed += [f"`run` ends with {row.run.status}"] if row.run.status != row.plain.status else []
    counts = {way: (each.graphs, each.breaks) for way, each in {"plain": row.plain, **ways}.items()}
    same = counts["plain"] == counts["run"] == counts["diff"]
    graphs = "{}, {}".format(*counts["plain"])
    if row.run.graphs is None:
        graphs = "-"
    elif not same:
        graphs += "; " + ", ".join("`{}` {}, {}".format(way, *counts[way]) for way in ways)
    verdict = row.diff.verdict or "no report"
    memory = "device_bytes" if device == "cuda" else "resident_bytes"
    return [
        program,
        "; ".join(changed) or "same",
        graphs,
        f"{verdict}: {row.diff.note}" if row.diff.note else verdict,
        ratios(row, "processor_seconds"),
        size(getattr(row.plain, memory)),
        ratios(row, memory),
    ]


HEAD = ("program", "output, exit status", "graphs, breaks", "verdict", "time of run, diff", "memory", "of run, diff")


def tables(device: str) -> list[tuple[str, str, list[list[str]]]]:
    """Of one device: what the results were measured on, a title, and rows of a table."""
    results = stored(RESULTS / f"{device}.json")
    if not results:
        return []
    made = {key: text for key, text in results.made.items() if key not in ("date", "machine")}
    measured = f"{results.made['date']}, {results.made['machine']}; {', '.join(map(' '.join, made.items()))}."
    missing = [name for name in [*PROGRAMS, *models()] if name not in results.rows]
    if missing:
        measured += f" Not run: {', '.join(f'`{name}`' for name in missing)}."
    rows = {name: cells(name, row, device) for name, row in results.rows.items()}
    of_models = [row for name, row in rows.items() if name.startswith("models")]
    others = [row for name, row in rows.items() if not name.startswith("models")]
    return [(measured, title, part) for title, part in (("Programs", others), ("Models", of_models)) if part]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="as 'trainer*' or 'models.py t5'")
    parser.add_argument("--jobs", type=int, default=1, help="programs that run side by side")
    parser.add_argument("--limit", type=float, default=300, help="seconds of one run of a program")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where results are written")
    parser.add_argument(
        "--write", type=Path, nargs="*", metavar="FILE", help="merge results into docs/compatibility.md"
    )
    options = parser.parse_args(argv)
    if options.write is not None:
        for file in options.write:
            results = msgspec.json.decode(file.read_bytes(), type=Results)
            store(results, RESULTS / f"{results.device}.json")
        from tools import pages

        return pages.main([])
    file = options.json or RESULTS / f"{options.device}.json"
    made, lock, threads = machine(options.device), threading.Lock(), max(1, (os.cpu_count() or 1) // options.jobs)

    def add(name: str) -> None:
        try:
            row = measure(name, options.device, options.limit, threads, cache)
        except Exception as error:  # the other programs are measured, whatever happens to this one
            row = Row(note=f"not measured: {type(error).__name__}: {error}")
        with lock:
            print(f"{name:28}", " | ".join(cells(name, row, options.device)[1:]), flush=True)
            store(Results(device=options.device, made=made, rows={name: row}), file)

    wanted = [name for name in [*PROGRAMS, *models()] if any(fnmatch.fnmatch(name, each) for each in options.only)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        cache = checked_instructions(Path(folder) / "cache")
        list(pool.map(add, wanted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
