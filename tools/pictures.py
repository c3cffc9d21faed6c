"""How are the documentation's pictures taken? `python -m tools.pictures [NAME ...]`: from the program, in a terminal.

Sessions are made first, by compiling, comparing and measuring real programs (SESSIONS); `--keep FOLDER` keeps them
there for the next time. Then `idbg-tui` opens each in a pseudo-terminal, keys are pressed (PICTURES), and what the
terminal shows is written to docs/pictures/ as SVG.
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
from idbg.schema.programs import Target
from idbg.schema.repros import Budget, Sought
from idbg.session.session import Session
from tests.harness.terminal import Terminal
from tools.screen_svg import picture

ROOT = Path(__file__).resolve().parents[1]
PICTURES_FOLDER = ROOT / "docs" / "pictures"
PROGRAMS = "docs/howto/programs"
ANY = "any.toml"  # an accelerator that takes everything, in the folder where pictures are taken
LONGEST = 1200.0  # seconds that one session may take to be made
WHOLE, ONE, LOW = (160, 45), (120, 32), (120, 20)  # columns and rows: of the whole screen, of one pane, of a short one


@dataclass(frozen=True)
class Picture:
    """A session ("": none is named), the keys to press in it, and what must then be on the screen.

    `first` is what is there before a key is pressed, `arguments` what the program is given beside the session.
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
    "help": Picture("block", ("?",), "Moving"),
    "graph": Picture("block", ("]", "]", "v", "z"), "1 Graph"),
    "source": Picture("block", ("v", "2", ".", ".", "z"), "2 Source"),
    "node": Picture("block", ("v", "3", "z"), "3 Node"),
    "violations": Picture("block", ("4", "z"), "4 Violations", LOW),
    "kernel-diff": Picture("gelu", ("5", "z"), "5 KernelDiff"),
    "benchmarks": Picture("block", ("6", "z"), "6 Bench"),
    "log": Picture("counts", ("7", "z"), "7 Log"),
    "rules": Picture("block", ("8", "z"), "8 Rules", LOW),
    "relaxed": Picture("block", ("8", "w", "z"), "8 Rules", LOW),
    "repros": Picture("block", ("9", "z"), "9 Repros", LOW),
    "repro": Picture("block", ("9", "z", "enter"), "repro.py", WHOLE),
    "why": Picture("counts", ("0", "]", "]", "z"), "0 Why"),
    "switches": Picture("switched", ("-", "z"), "- Switch"),
    "compared": Picture("switched", ("-", "]", "z"), "- Switch"),
    # last: it lists the sessions that the others were taken of
    "welcome": Picture("", (), "attention.py", LOW, "session"),
}


def block(session: Session) -> None:
    """A transformer block for an accelerator that takes little of it: compiled, measured, a violation made small."""
    session.run()
    assert session.wait(LONGEST)
    like = BenchCase.of(session.program, session.target, runs=100)
    rows = session.folder.with_name("rows.sqlite")  # of its own: what was measured here before is nobody's business
    session.bench(cases([session.program], [BenchBackend(name) for name in ("eager", "inductor", "mock")], like), rows)
    session.time_kernels(like)
    softmax = next(each for each in session.history.runs[1].violations if each.rule == "no softmax")
    session.export_repro(softmax.node, softmax.rule)
    session.minify(Sought("violation", softmax.node, softmax.rule), Budget(calls=20, seconds=300))


def compared(session: Session) -> None:
    """Held against eager and float64, stage by stage and kernel by kernel."""
    session.run(comparison=Comparison(per_kernel=True))


def once(session: Session) -> None:
    """Compiled."""
    session.run()


def twice(session: Session) -> None:
    """Compiled with torch's defaults, then with fewer nodes in a kernel."""
    session.start()
    session.run()
    assert session.wait(LONGEST)
    session.run(replace(session.target, options={"max_fusion_size": 1}))


# what each session is of, for which accelerator, and what is done in it
SESSIONS: dict[str, tuple[str, str, Callable[[Session], None]]] = {
    "block": ("examples/attention.py", f"{PROGRAMS}/npu.toml", block),
    "gelu": (f"{PROGRAMS}/gelu.py", ANY, compared),
    "counts": (f"{PROGRAMS}/counts.py", ANY, once),
    "switched": ("examples/mlp_train.py", ANY, twice),
}


def make(name: str, place: Path) -> Path:
    """The folder of the session of this name; where it is kept already, nothing is compiled."""
    file, accelerator, do = SESSIONS[name]
    output = place / "debug_artifacts"
    kept = sorted(output.glob(f"{Path(file).stem}-*/events.jsonl"))
    if kept:
        return kept[-1].parent
    program = parse_program(file, module=False, argv=(), cwd=os.getcwd())
    with Session(program, Target("aot", accelerator=accelerator), output=output) as session:
        do(session)
        assert session.wait(LONGEST), f"{name} took longer than {LONGEST} s"
        return session.folder


def take(asked: Picture, folder: Path | None) -> str:
    """The screen of the program after the keys, as SVG."""
    columns, rows = asked.size
    command = [sys.executable, "-m", "idbg_tui", *asked.arguments]
    if folder is not None:
        command.append(os.path.relpath(folder))
    # nobody's settings, and nothing that was measured here before
    homes = {f"XDG_{name}_HOME": str(Path.cwd() / name.lower()) for name in ("CONFIG", "DATA")}
    terminal = Terminal(command, cwd=Path.cwd(), env=homes, columns=columns, rows=rows)
    try:
        terminal.until(asked.first, LONGEST)
        terminal.settle(1.0)
        terminal.press(*asked.keys)
        terminal.until(asked.seen, 30)
        terminal.settle(1.0)
        return picture(terminal.screen)
    finally:
        terminal.close()


@contextmanager
def stage(kept: Path | None) -> Iterator[Path]:
    """A folder with copies of the programs, which the pictures then name by short paths, as the current one."""
    place = kept or Path(tempfile.mkdtemp(prefix="pictures-"))
    here = Path.cwd()
    for name in ("examples", PROGRAMS):
        shutil.copytree(ROOT / name, place / name, dirs_exist_ok=True)
    (place / ANY).write_text('name = "any"\n', encoding="utf-8")
    os.chdir(place)
    try:
        yield place
    finally:
        os.chdir(here)
        if kept is None:
            shutil.rmtree(place)


def main(argv: Sequence[str] | None = None) -> int:
    """Take them, and say how large each is."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description="Take the documentation's pictures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which (all): {', '.join(PICTURES)}")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the sessions here, and use those that are")
    args = parser.parse_args(argv)
    kept = args.keep.absolute() if args.keep else None
    PICTURES_FOLDER.mkdir(exist_ok=True)
    with stage(kept) as place:
        for name in args.names or PICTURES:
            asked = PICTURES[name]
            svg = take(asked, make(asked.session, place) if asked.session else None)
            (PICTURES_FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
            print(f"{name}.svg  {len(svg.encode()) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
