"""How are the compiler's decisions told, as text and as JSON? One kind a module: `text`, `as_json`, and `about`.

`idbg analyze --type NAME` is the module NAME.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Protocol, cast

from idbg import views
from idbg.render.text import lines
from idbg.schema.decisions.decision import Decision
from idbg.schema.runs import Run
from idbg.views.tree import Section

TYPES: dict[str, str] = {
    "summary": "what was compiled, and what stood in its way",
    "frames": "what became of each frame, and what Dynamo left alone",
    "breaks": "where graphs break, why, and what that costs",
    "recompiles": "what was compiled again, for which guard, and what to do",
    "graphs": "the graphs of each frame, and their ops",
    "guards": "what torch checks before it uses compiled code, what that costs, and which check failed",
    "passes": "what each pass did to a graph, and what the backward computes again",
    "time": "where the time of the compile went, and what helps",
    "fusion": "what became one kernel and what did not, what each kernel does, and what is computed twice",
    "constraints": "the accelerator's rules that are broken",
    "cache": "what was found in which cache, and why not",
    "cuda_graphs": "what became a CUDA graph, and why not",
    "autotune": "which candidates were measured, and which won",
}
"""What can be told, in the order in which it is shown, and of what it tells."""


class Telling(Protocol):
    """A module of this room. `about` is there where single nodes, kernels or lines can be asked about it."""

    def text(self, run: Run) -> Iterable[str]:
        """The lines for a person, the most important first."""

    def as_json(self, run: Run) -> object:
        """The same for a program, whole: records, lists and plain values."""


VIEWED = {name: {"constraints": "violations"}.get(name, name) for name in TYPES if name != "summary"}
"""Those that `idbg.views` has, with the name of the module."""


def telling(name: str) -> Telling:
    """The module of this name of TYPES."""
    return Viewed(name) if name in VIEWED else cast("Telling", import_module(f"{__name__}.{name}"))


class Viewed:
    """The text of a section of `idbg.views`, and the records that its module has."""

    def __init__(self, name: str) -> None:
        self.module = views.view(VIEWED[name])

    def text(self, run: Run) -> Iterable[str]:
        """The section's lines."""
        return lines(self.section(run))

    def section(self, run: Run) -> Section:
        """What the text is drawn from."""
        return self.module.view(run)

    def as_json(self, run: Run) -> object:
        """The module's records."""
        return self.module.as_json(run)


def decisions(run: Run) -> list[Decision]:
    """Every decision of the run, of each kind that can tell what it is about."""
    modules = (views.view(VIEWED[name]) if name in VIEWED else telling(name) for name in TYPES)
    abouts = (getattr(module, "about", None) for module in modules)
    return [decision for about in abouts if about is not None for decision in about(run)]
