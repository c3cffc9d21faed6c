"""Is a switch put into a target where it belongs, its default left to torch, and what it cannot be refused?"""

import re

import pytest

from idbg.config import switches
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Switch, Target

AUTOTUNE = Switch(name="max_autotune", type="bool", default=False, choices=(True, False))
LIMIT = Switch(name="dynamo.recompile_limit", place="setting", type="int", default=8)
MODE = Switch(name="mode", place="target", type="str", default="", choices=("", "default", "max-autotune"))
SOURCES = Switch(name="dynamic_sources", place="target", type="list", default=[])
SIMDLEN = Switch(name="cpp.simdlen", type="int | None", default=None)
BACKENDS = Switch(name="max_autotune_gemm_backends", type="str", default="ATEN,TRITON,CPP")
EVERY = [AUTOTUNE, LIMIT, MODE, SOURCES, SIMDLEN, BACKENDS]


@pytest.mark.parametrize(
    ("switch", "value", "target"),
    [
        (AUTOTUNE, True, Target(options={"max_autotune": True})),
        (LIMIT, 2, Target(settings={"dynamo.recompile_limit": 2})),
        (MODE, "max-autotune", Target(mode="max-autotune")),
        (SOURCES, ["L['x']"], Target(dynamic_sources=("L['x']",))),
    ],
)
def test_each_has_its_place_in_the_target(switch: Switch, value: OptionValue, target: Target) -> None:
    assert switches.set_switch(Target(), switch, value) == target
    assert switches.value_of(switch, target) == value and switches.is_changed(switch, target)
    assert switches.set_switch(target, switch, switch.default) == Target()
    assert switches.with_defaults(target, EVERY) == Target()


def test_a_backend_with_options_of_its_own_takes_none_of_inductors() -> None:
    theirs = Target(backend="tvm", options={"trials": 3}, options_for="tvm")
    assert switches.value_of(AUTOTUNE, theirs) is False
    with pytest.raises(BadInput, match="tvm takes none"):
        switches.set_switch(theirs, AUTOTUNE, True)
    assert switches.set_switch(theirs, LIMIT, 2).options == {"trials": 3}


def test_what_the_target_has_beside_them_is_listed_and_can_be_taken_away() -> None:
    target = Target(options={"max_autotune": True, "trace.enabled": True}, settings={"fx.other": 1})
    found = switches.unlisted(target, EVERY)
    assert [each.name for each in found] == ["trace.enabled", "fx.other"]
    assert all(switches.is_changed(each, target) for each in found)
    assert switches.with_defaults(target, [*EVERY, *found]) == Target()


@pytest.mark.parametrize(
    ("switch", "text", "value"),
    [
        (LIMIT, "4", 4),
        (SIMDLEN, "none", None),
        (SIMDLEN, "0", 0),
        (BACKENDS, "ATEN", "ATEN"),
        (BACKENDS, "8", "8"),
        (SOURCES, "L['x'], L['y']", ["L['x']", "L['y']"]),
        (SOURCES, "", []),
    ],
)
def test_what_is_typed_is_of_the_switchs_type(switch: Switch, text: str, value: OptionValue) -> None:
    assert switches.parse_value(switch, text) == value


@pytest.mark.parametrize(
    ("switch", "text", "words"),
    [
        (LIMIT, "many", "is int, not many"),
        (LIMIT, "true", "is int, not true"),
        (LIMIT, "", "is int, not nothing"),
        (MODE, "max-autotun", "cannot be max-autotun.*did you mean max-autotune"),
        (SOURCES, "[", "is not JSON"),
    ],
)
def test_what_it_cannot_be_is_refused_in_one_sentence(switch: Switch, text: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        switches.parse_value(switch, text)
    assert re.search(words, refused.value.in_one_line) and "\n" not in refused.value.in_one_line
