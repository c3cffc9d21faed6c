"""`idbg switches`: what can be flipped, as the torch that runs here has it."""

import json
import re

import pytest

from idbg import cli
from idbg.cli.commands import switches as command
from idbg.schema.programs import Switch

EVERY = (
    Switch(name="dynamic", place="target", group="torch.compile", type="bool | None", choices=(None, True, False)),
    Switch(name="cold", place="target", group="torch.compile", type="bool", default=False, choices=(True, False)),
    Switch(name="cpp.simdlen", group="generated code", type="int | None"),
    Switch(
        name="dynamo.recompile_limit", place="setting", group="Dynamo", type="int", default=8, meaning="how many\n- a"
    ),
)


def test_text_says_how_each_is_given_its_default_and_its_meaning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "listed", lambda: EVERY)
    assert cli.main(["switches"]) == 0
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "4 switches",
        "",
        "torch.compile",
        "switch default",
        "--dynamic the program's, or True, False",
        "--cold False, or True",
        "",
        "generated code",
        "switch default",
        "--option cpp.simdlen=int|None None",
        "",
        "Dynamo",
        "switch default",
        "--setting dynamo.recompile_limit=int 8",
        "how many",
        "- a",
    ]


def test_each_group_is_sorted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "listed", lambda: EVERY)
    assert cli.main(["switches", "--sort", "default"]) == 0
    out = capsys.readouterr().out
    assert out.index("--cold") < out.index("--dynamic")
    assert cli.main(["switches", "--sort", "value"]) == 2
    assert "the columns are switch, default" in capsys.readouterr().err


def test_a_word_chooses_and_one_that_nothing_has_is_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "listed", lambda: EVERY)
    assert cli.main(["switches", "Dynamo", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "idbg.switches/1"
    assert [each["name"] for each in told["switches"]] == ["dynamo.recompile_limit"]
    assert cli.main(["switches", "simdlan"]) == 2
    assert "did you mean cpp.simdlen?" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_the_worker_tells_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["switches", "epilogue_fusion"]) == 0
    assert re.search("--option epilogue_fusion=bool +True, or False", capsys.readouterr().out)
