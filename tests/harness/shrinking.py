"""Candidates without a process: a draft, its tensors, and oracles that run its statements here in eager."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from idbg.engine.minify.shrink import shrunk
from idbg.engine.repro.draft import Candidate, Draft, Heading, Input, Raises
from idbg.engine.repro.script import render
from idbg.engine.repro.values import stored
from tests.harness.repro_bench import run

HEADING = Heading("a title", "torch")
Values = dict[str, Any]


def candidate(statements: list[str], result: str, tensors: Mapping[str, torch.Tensor | str], **draft: Any) -> Candidate:
    """A script of these statements; an argument that is text is a literal."""
    kept, given = {}, []
    for name, value in tensors.items():
        if isinstance(value, str):
            given.append(Input(name, literal=value))
            continue
        kept[name], argument = stored(name, value)
        given.append(argument)
    made = Draft(Raises("RuntimeError", ""), tuple(given), tuple(statements), result, 'backend="inductor"')
    return Candidate(replace(made, values="the program's own", **draft), HEADING, lambda: kept)


def values(tried: Candidate) -> Values:
    """Its arguments as the script makes them, then all that its statements name. Raises what they raise."""
    saved = tried.tensors()
    names: Values = {"torch": torch, "operator": operator, "device": torch.device, "saved": saved}
    names |= {
        "inf": torch.inf,
        "nan": torch.nan,
        "weight": lambda tensor: tensor,
        "dynamic": lambda tensor, *dims: tensor,
    }
    torch.manual_seed(0)
    made = [eval(each.text, names) for each in tried.draft.arguments]
    names |= {each.name: value for each, value in zip(tried.draft.arguments, made, strict=True)}
    exec("\n".join(tried.draft.statements), names)
    names["result"] = eval(tried.draft.result, names)
    names["lines"] = "\n".join(tried.draft.statements)
    return names


@dataclass
class Told:
    """What a shrinking asked and told."""

    asked: list[Candidate] = field(default_factory=list)
    better: list[Candidate] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def shrink(first: Candidate, fails: Callable[[Candidate], bool]) -> tuple[Candidate, Told]:
    """What is left of it, and what was asked."""
    told = Told()

    def asked(tried: Candidate) -> bool:
        told.asked.append(tried)
        return fails(tried)

    return shrunk(first, asked, told.better.append, told.steps.append), told


def where(condition: Callable[[Values], bool], least: int = 0) -> Callable[[Candidate], bool]:
    """Fails where its statements run, are at least so many lines, and this holds of what they name."""

    def fails(tried: Candidate) -> bool:
        if len(tried.draft.statements) < least:
            return False
        try:
            return bool(condition(values(tried)))
        except Exception:  # a script that does not run fails otherwise
            return False

    return fails


def run_here(folder: Path, title: str = "It fails.") -> Callable[[Candidate], bool]:
    """Fails where its script, run in this process, exits 1."""

    def fails(tried: Candidate) -> bool:
        save_file(dict(tried.tensors()), folder / "tensors.safetensors")
        script = folder / "repro.py"
        script.write_text(render(tried.draft, replace(HEADING, title=title)))
        with torch._inductor.config.patch({}):  # what a script sets is gone after it
            return run(script)[0] == 1

    return fails
