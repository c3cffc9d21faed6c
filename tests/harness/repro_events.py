"""What searches for smaller scripts tell, and the scripts that they leave, made by hand after real ones."""

import time
from pathlib import Path

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Failure
from idbg.schema.repros import Minified, MinifyProgress, OtherFailure, Signature, Sought

NODE = NodeId(GraphId("0/0", "inference"), "convolution_1")
HEAD = '''"""{title}"""

import torch
from safetensors.torch import load_file

saved = load_file("tensors.safetensors")


def program(x, weight):
'''
TAIL = """    return y


y = torch.compile(program)(saved["x"], saved["weight"])
print("REPRODUCED convolution: unsupported-op")
raise SystemExit(1)
"""
FAILING = (
    HEAD.format(title="It fails.")
    + "    # x = self.conv(x)\n    y = torch.conv2d(x, weight)\n    y = y.cumsum(1)\n"
    + TAIL
)
PASSING = HEAD.format(title="It does not fail.") + "    # x = self.conv(x)\n    y = torch.conv2d(x, weight)\n" + TAIL
OTHER = HEAD.format(title="Another failure.") + "    y = x @ weight\n" + TAIL
SEARCHED = Sought("violation", node=NODE, rule="unsupported-op")
STOPPED = Failure(kind="cancelled", message="cancelled")


def scripts(folder: Path) -> tuple[str, str, str]:
    """The paths of three scripts, which are written: one that fails, the nearest that does not, another failure."""
    made = folder / "repros" / "smallest"
    made.mkdir(parents=True, exist_ok=True)
    paths = tuple(made / name for name in ("repro.py", "passing.py", "other_1.py"))
    for path, text in zip(paths, (FAILING, PASSING, OTHER), strict=True):
        path.write_text(text)
    failing, passing, other = map(str, paths)
    return failing, passing, other


def found(folder: Path, *, size: int = 4, minimal: bool = True) -> Minified:
    """What a search came to, with its scripts."""
    failing, passing, other = scripts(folder)
    return Minified(
        signature=Signature("violation", type="unsupported-op", message="convolution"),
        path=failing,
        reproduced=True,
        status=1,
        printed="REPRODUCED convolution: unsupported-op\n",
        size=size,
        whole=1934,
        lines=len(FAILING.splitlines()),
        bytes=len(FAILING),
        minimal=minimal,
        guarantee="1-minimal: no node can be left out" if minimal else "stopped after 17 tries",
        calls=31 if minimal else 17,
        seconds=12.0,
        others=(OtherFailure("TypeError: conv2d(): argument 'input' must be Tensor", 2, other),),
        passing=passing,
        difference=("cumsum",),
    )


def session(folder: Path, now: float | None = None) -> list[SessionEvent]:
    """A repro that was written, one that could not be, a search to its end, one that was stopped, and one of a node."""
    now = time.time() if now is None else now
    written = str(folder / "repros" / "cumsum" / "repro.py")
    asked = Failure(
        kind="input", message="no repro: my::op is registered by the program's own Python", hint="import it"
    )
    smallest, stopped = found(folder), found(folder, size=412, minimal=False)
    return [
        events.ReproStarted(at=now - 7300, run=1, node=NODE, rule="unsupported-op"),
        events.ReproEnded(at=now - 7299, run=1, path=written, reproduced=False, status=0, output="fine\n", seconds=1.0),
        events.ReproStarted(at=now - 3700, run=1, node=NODE, rule="alignment"),
        events.ReproEnded(at=now - 3699, run=1, path="", failure=asked),
        events.MinifyStarted(at=now - 600, run=1, sought=SEARCHED),
        events.MinifyEnded(at=now - 588, run=1, minified=smallest),
        events.MinifyStarted(at=now - 90, run=1, sought=Sought("failure")),
        events.MinifyProgressed(at=now - 80, run=1, progress=progress()),
        events.MinifyEnded(at=now - 70, run=1, minified=stopped, failure=STOPPED),
    ]


def progress(*, calls: int = 17, doing: str = "prefix") -> MinifyProgress:
    """How far a search is."""
    return MinifyProgress(doing, size=412, whole=1934, calls=calls, budget=300, eta=40.0, others=2)
