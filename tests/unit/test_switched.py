"""A switch is flipped by its name."""

from typing import get_args

import pytest

from idbg.config.switches import Field, with_value, without_value
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target


def value_named(target: Target, name: str) -> OptionValue:
    """The target's value for this name, or None."""
    if name in get_args(Field):
        value = getattr(target, name)
        return list(value) if isinstance(value, tuple) else value
    return target.settings[name] if name in target.settings else target.options.get(name)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_autotune", True, Target(options={"max_autotune": True})),
        ("triton.cudagraphs", True, Target(options={"triton.cudagraphs": True})),
        ("dynamo.recompile_limit", 2, Target(settings={"dynamo.recompile_limit": 2})),
        ("mode", "max-autotune", Target(mode="max-autotune")),
        ("dynamic", True, Target(dynamic=True)),
        ("cold", True, Target(cold=True)),
        ("backend", "inductor", Target("inductor")),
        ("backend", "openvino", Target("openvino", options_for="openvino")),
        ("dynamic_sources", "L['x']", Target(dynamic_sources=("L['x']",))),
    ],
)
def test_a_name_says_what_it_is(name: str, value: OptionValue, expected: Target) -> None:
    assert with_value(Target(), name, value) == expected
    found = value_named(expected, name)
    assert found == ([value] if name == "dynamic_sources" else value)
    back = without_value(expected, name)
    assert value_named(back, name) == value_named(Target(), name)


def test_sources_are_added_and_a_list_takes_their_place() -> None:
    one = with_value(Target(), "dynamic_sources", "L['x']")
    assert with_value(one, "dynamic_sources", "L['y']").dynamic_sources == ("L['x']", "L['y']")
    assert with_value(one, "dynamic_sources", ["L['y']"]).dynamic_sources == ("L['y']",)


@pytest.mark.parametrize(("name", "value"), [("dynamic", "yes"), ("cold", 1), ("mode", True), ("float64", "gpu")])
def test_a_field_that_cannot_be_so_is_refused(name: str, value: OptionValue) -> None:
    with pytest.raises(BadInput, match=f"{name} cannot be"):
        with_value(Target(), name, value)
