"""Take the documentation's pictures from the program in a terminal: `python -m tools.pictures [NAME ...]`.

First real programs are compiled, compared and measured (SESSIONS); `--keep FOLDER` keeps the sessions. Then `idbg-tui`
opens each in a pseudo-terminal, keys are pressed (PICTURES), and the screen is written to docs/pictures/ as SVG.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from idbg.bench.plan import cases
from idbg.config.arguments import parse_program
from idbg.schema.bench import BenchBackend, BenchCase
from idbg.schema.diff import Comparison
from idbg.schema.programs import NO_ACCELERATOR, Target
from idbg.schema.repros import Budget, Sought
from idbg.session.session import Session
from tests.harness.terminal import Terminal
from tools.screen_svg import picture

ROOT = Path(__file__).resolve().parents[1]
PICTURES_FOLDER = ROOT / "docs" / "pictures"
PROGRAMS = "docs/howto/programs"
FOREIGN = "tests/recordings/foreign.py"  # compiled by other compilers
ANY = "any.toml"  # an accelerator that takes everything
TIMEOUT = 1200.0  # seconds for one session
WHOLE, ONE, LOW = (160, 45), (120, 32), (120, 20)  # columns and rows: of the whole screen, of one pane, of a short one


@dataclass(frozen=True)
class Picture:
    """A session ("": none), the keys to press, and the text that must then be on the screen.

    `first`: the text to wait for before the keys. `arguments`: more arguments of the program.
    """

    session: str
    keys: tuple[str, ...]
    seen: str
    size: tuple[int, int] = ONE
    first: str = "saved"
    arguments: tuple[str, ...] = ()


PICTURES = {
    "screen": Picture("block", ("v", "v"), "matmul tiles", WHOLE),
    "tour": Picture("", (), "it has compiled", WHOLE, "it has compiled", ("--tour",)),
    "help": Picture(
        "block",
        (
            "4",
            "?",
        ),
        "Moving",
    ),
    "palette": Picture("block", ("z", ":", *"fus"), "fusion", LOW),
    "menu": Picture("block", ("v", "z", "!"), "esc closes", LOW),
    "graph": Picture("block", ("]", "]", "v", "z"), "1 Graph"),
    "source": Picture("block", ("v", "2", ".", ".", "z"), "2 Source"),
    "node": Picture("block", ("v", "3", "z"), "3 Node"),
    "findings": Picture("block", ("4", "z"), "4 Findings", LOW),
    "kernel-diff": Picture("gelu", ("5", "z"), "5 KernelDiff"),
    "benchmarks": Picture("block", ("6", "z"), "6 Bench"),
    "log": Picture("counts", ("7", "z"), "7 Log"),
    "rules": Picture("block", ("8", "z"), "8 Rules", LOW),
    "relaxed": Picture("block", ("8", "]", "]", "z"), "8 Rules", LOW),
    "repros": Picture("block", ("9", "z"), "9 Repros", LOW),
    "repro": Picture("block", ("9", "z", "enter"), "repro.py", WHOLE),
    "why": Picture("counts", ("0", "]", "]", "z"), "0 Why"),
    "switches": Picture("switched", ("-", "z"), "- Switch"),
    "compared": Picture("switched", ("-", "]", "z"), "- Switch"),
    "iree": Picture("iree", ("j", "2", ".", ".", ".", "z"), "iree: flow", WHOLE),
    "openvino": Picture("openvino", ("j", "2", ".", "z"), "after transformations", WHOLE),
    # last: it lists the sessions of the other pictures
    "welcome": Picture("", (), "attention.py", LOW, "session"),
}


def block(session: Session) -> None:
    """Compile a transformer block for a small accelerator, measure it, and minify a violation."""
    session.run()
    assert session.wait(TIMEOUT)
    like = BenchCase.of(session.program, session.target, runs=100)
    rows = session.folder.with_name("rows.sqlite")  # its own database: earlier measurements must not show
    session.bench(cases([session.program], [BenchBackend(name) for name in ("eager", "inductor", "mock")], like), rows)
    session.time_kernels(like)
    softmax = next(each for each in session.history.runs[1].violations if each.rule == "no softmax")
    session.export_repro(softmax.node, softmax.rule)
    session.minify(Sought("violation", softmax.node, softmax.rule), Budget(calls=20, seconds=300))


def compared(session: Session) -> None:
    """Compare every stage and kernel."""
    session.run(comparison=Comparison(per_kernel=True))


def once(session: Session) -> None:
    """Compile."""
    session.run()


def twice(session: Session) -> None:
    """Compile with torch's defaults, then with fewer nodes per kernel."""
    session.start()
    session.run()
    assert session.wait(TIMEOUT)
    session.run(replace(session.target, options={"max_fusion_size": 1}))


def by(backend: str) -> Callable[[Session], None]:
    """Compile with another compiler."""

    def compile(session: Session) -> None:
        session.run(replace(session.target, backend=backend))

    return compile


# the program of each session, its accelerator, and what is done in it
SESSIONS: dict[str, tuple[str, str, Callable[[Session], None]]] = {
    "block": ("examples/attention.py", f"{PROGRAMS}/npu.toml", block),
    "gelu": (f"{PROGRAMS}/gelu.py", ANY, compared),
    "counts": (f"{PROGRAMS}/counts.py", ANY, once),
    "switched": ("examples/mlp_train.py", ANY, twice),
    "iree": (FOREIGN, NO_ACCELERATOR, by("turbine_cpu")),
    "openvino": (FOREIGN, NO_ACCELERATOR, by("openvino")),
}


def make(name: str, place: Path) -> Path:
    """The folder of the session; one that exists is not compiled again."""
    file, accelerator, do = SESSIONS[name]
    output = place / (name if file == FOREIGN else "debug_artifacts")  # several are of that program
    kept = sorted(output.glob(f"{Path(file).stem}-*/events.jsonl"))
    if kept:
        return kept[-1].parent
    program = parse_program(file, module=False, argv=(), cwd=os.getcwd())
    with Session(program, Target("aot", accelerator=accelerator), output=output) as session:
        do(session)
        assert session.wait(TIMEOUT), f"{name} took longer than {TIMEOUT} s"
        return session.folder


def take(wanted: Picture, folder: Path | None) -> str:
    """The screen after the keys, as SVG."""
    columns, rows = wanted.size
    command = [sys.executable, "-m", "idbg_tui", *wanted.arguments]
    if folder is not None:
        command.append(os.path.relpath(folder))
    # no settings, and no earlier measurements
    homes = {f"XDG_{name}_HOME": str(Path.cwd() / name.lower()) for name in ("CONFIG", "DATA")}
    terminal = Terminal(command, cwd=Path.cwd(), env=homes, columns=columns, rows=rows)
    try:
        terminal.until(wanted.first, TIMEOUT)
        terminal.settle(1.0)
        terminal.press(*wanted.keys)
        terminal.until(wanted.seen, 30)
        terminal.settle(1.0)
        return picture(terminal.screen)
    finally:
        terminal.close()


@contextmanager
def stage(kept: Path | None) -> Iterator[Path]:
    """Change to a folder with copies of the programs, so that pictures have short paths."""
    place = kept or Path(tempfile.mkdtemp(prefix="pictures-"))
    here = Path.cwd()
    for name in ("examples", PROGRAMS):
        shutil.copytree(ROOT / name, place / name, dirs_exist_ok=True)
    (place / FOREIGN).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / FOREIGN, place / FOREIGN)
    (place / ANY).write_text('name = "any"\n', encoding="utf-8")
    os.chdir(place)
    try:
        yield place
    finally:
        os.chdir(here)
        if kept is None:
            shutil.rmtree(place)


def main(argv: Sequence[str] | None = None) -> int:
    """Take the pictures, and print their sizes."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description="Take the documentation's pictures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (all): {', '.join(PICTURES)}")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the sessions here, and use existing ones")
    args = parser.parse_args(argv)
    kept = args.keep.absolute() if args.keep else None
    PICTURES_FOLDER.mkdir(exist_ok=True)
    with stage(kept) as place:
        for name in args.names or PICTURES:
            wanted = PICTURES[name]
            svg = take(wanted, make(wanted.session, place) if wanted.session else None)
            (PICTURES_FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
            print(f"{name}.svg  {len(svg.encode()) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
