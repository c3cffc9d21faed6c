"""The settings that can be flipped are those of the torch that runs here, in torch's own words."""

from typing import Literal

import pytest
import torch

from idbg.engine.compat import config_comments, settings
from idbg.engine.decisions.switches import switches
from idbg.engine.program.option_types import checked, checked_settings
from idbg.schema.programs import Switch

COMMENTED = '''\
# what is above
# goes on
above = 1

beside: int = 2  # what is beside  # type: ignore[assignment]
below = 3
"""What is below,
in two lines."""

# [@compile_ignored: debug] a list:
#  - one
#    and more of it
#  - two
#
# Then an example:
#     x = 1
listed = 4
nothing = 5

class table:
    # of a table
    inner = 6
'''


@pytest.fixture(scope="module")
def every() -> dict[str, Switch]:
    return {switch.name: switch for switch in switches()}


def test_a_comment_is_found_above_beside_and_below(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("inspect.getsource", lambda module: COMMENTED)
    assert config_comments._comments.__wrapped__("torch._dynamo.config") == {
        "above": "what is above goes on",
        "beside": "what is beside",
        "below": "What is below, in two lines.",
        "listed": "a list:\n- one and more of it\n- two\n\nThen an example:\n     x = 1",
        "table.inner": "of a table",
    }


def test_each_is_there_with_what_torch_says_of_it(every: dict[str, Switch]):
    assert len(every) > 120
    pattern_matcher = every["pattern_matcher"]
    assert (pattern_matcher.place, pattern_matcher.type, pattern_matcher.default) == ("option", "bool", True)
    assert pattern_matcher.choices == (True, False)
    assert pattern_matcher.meaning == "enable pattern match+replace optimizations"
    assert (every["cpp.simdlen"].type, every["cpp.simdlen"].default) == ("int | None", None)
    assert every["cpp.simdlen"].meaning == ""  # torch says nothing, and so do we
    limit = every["dynamo.recompile_limit"]
    assert (limit.place, limit.type, limit.default) == (
        "setting",
        "int",
        settings.default_of("dynamo.recompile_limit"),
    )
    assert "CPP templates and kernels for CPU" in every["max_autotune_gemm_backends"].meaning
    assert "Comma delimited list of sources" in every["dynamic_sources"].meaning
    assert sum(not switch.meaning for switch in every.values()) < 25


def test_mode_dynamic_and_stance_are_as_torch_has_them(every: dict[str, Switch]):
    assert every["mode"].choices == ("", *torch._inductor.list_mode_options())
    assert '"reduce-overhead" is a mode that reduces the overhead' in every["mode"].meaning
    assert "options (dict)" not in every["mode"].meaning
    assert every["dynamic"].choices == (None, True, False)
    assert every["dynamic"].meaning.startswith("Use dynamic shape tracing")
    assert "fail_on_recompile" in every["stance"].choices
    assert '"fail_on_recompile": Raise an error when recompiling' in every["stance"].meaning
    assert "skip_guard_eval_unsafe" not in every["stance"].meaning


def test_whatever_can_be_chosen_can_be_had(every: dict[str, Switch]):
    for switch in every.values():
        for choice in switch.choices:
            if switch.place == "option":
                assert checked({switch.name: choice}) == {switch.name: choice}
            elif switch.place == "setting":
                assert checked_settings({switch.name: choice}) == {switch.name: choice}


def test_a_default_is_what_it_is_without_us(every: dict[str, Switch]):
    for name, switch in every.items():
        if switch.place == "option" and switch.default is not None:
            assert switch.default == settings.plain(settings.option_default(name))


@pytest.mark.parametrize(
    ("kind", "words", "choices"),
    [
        (bool, "bool", (True, False)),
        (int, "int", ()),
        (bool | None, "bool | None", (True, False, None)),
        (int | None, "int | None", ()),
        (Literal["a", 2], "'a' | 2", ("a", 2)),
    ],
)
def test_a_kind_in_words(kind: object, words: str, choices: tuple[object, ...]):
    assert settings.kind_in_words(kind) == words
    assert settings.choices_of(kind) == choices
