"""The script's own names give way to those of the user's code that it carries."""

import dataclasses
from pathlib import Path

import pytest

from idbg.engine.repro.draft import Check, Differs, Draft, Heading, Input, Raises
from idbg.engine.repro.script import bound_at_top, render
from tests.harness.repro_bench import run

NAMES = ["program", "inputs", "results", "wrong", "main", "verdict", "compiled", "eager", "found", "error", "MESSAGE"]
BACKEND = """
def NAME(gm, inputs):
    if FAILS:
        raise ValueError("no MESSAGE about it, and nothing wrong")
    return lambda *args: tuple(out * 2 for out in gm(*args))
"""
SAID = "no MESSAGE about it, and nothing wrong"


def draft(check: Check, name: str) -> Draft:
    source = BACKEND.replace("NAME", name).replace("FAILS", str(isinstance(check, Raises)))
    return Draft(
        check, (Input("x", recipe="torch.ones(3)"),), ("y = x.sin()",), "(y,)", f"backend={name}", definitions=(source,)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", [Raises("ValueError", SAID), Differs("values", 1e-3)], ids=["raises", "differs"])
def test_a_name_of_the_users_is_not_defined_again(tmp_path: Path, name: str, check: Check) -> None:
    script = tmp_path / "repro.py"
    script.write_text(render(draft(check, name), Heading("It fails", "torch")))
    status, out = run(script)
    assert status == 1, script.read_text() + out
    assert "REPRODUCED" in out


def test_without_a_clash_the_scripts_own_names_stay() -> None:
    text = render(draft(Differs("values", 1e-3), "mine"), Heading("It fails", "torch"))
    assert "def wrong(" in text
    assert "its_" not in text
    alone = dataclasses.replace(draft(Differs("values", 1e-3), "mine"), definitions=())
    assert "def wrong(" in render(alone, Heading("It fails", "torch"))


def test_what_sources_give_to_their_module() -> None:
    assert bound_at_top(["import a.b as c\nX, y = 1, 2", "def f(z):\n    w = 1", "class G:\n    v = 2"]) == {
        *("c", "X", "y", "f", "G")
    }
