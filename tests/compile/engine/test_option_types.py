"""Inductor's options are held against the types that torch's own settings give them."""

from typing import Literal, Optional

import pytest
import torch._inductor.config

from idbg.engine.backends import find
from idbg.engine.compat import settings
from idbg.engine.program.option_types import checked
from idbg.engine.program.target import options_of
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Target


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> object:
    """The option `x` is of this kind."""
    monkeypatch.setattr(settings, "options", lambda: {"x"})
    monkeypatch.setattr(settings, "option_type", lambda _: request.param)
    return request.param


def test_every_option_takes_what_it_is_now() -> None:
    plain = (bool, int, float, str, type(None))
    values = {name: getattr(torch._inductor.config, name) for name in settings.options()}
    settable: dict[str, OptionValue] = {name: value for name, value in values.items() if isinstance(value, plain)}
    assert len(settable) > 300
    assert checked(settable) == settable
    assert {name: type(value) for name, value in checked(settable).items()} == {
        name: type(value) for name, value in settable.items()
    }


@pytest.mark.parametrize(
    ("kind", "value", "becomes"),
    [
        (bool, True, True),
        (bool, 1, True),
        (int, 3, 3),
        (float, 3, 3.0),
        (str, 90, "90"),
        (str, True, "true"),
        (Literal["a", "2"], 2, "2"),
        (Literal[0, 1], 1, 1),
        (Literal["none", "all"], "none", "none"),
        (Optional[int], "none", None),  # noqa: UP045
        (int | None, None, None),
        (int | None, 4, 4),
        (str | None, "none", "none"),
        (list[str], ["a"], ["a"]),
        (dict[str, int] | None, {"a": 1}, {"a": 1}),
        (type(None), "anything", "anything"),  # a default of None without a type says nothing
        (tuple[int, int], "anything", "anything"),
    ],
    indirect=["kind"],
)
def test_a_value_becomes_one_of_its_kind(kind: object, value: OptionValue, becomes: OptionValue) -> None:
    found = checked({"x": value})["x"]
    assert found == becomes and type(found) is type(becomes)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (bool, "perhaps", "it is true or false"),
        (bool, 2, "it is true or false"),
        (int, 2.5, "it is a whole number"),
        (int, True, "it is a whole number"),
        (float, "fast", "it is a number"),
        (int | None, "few", "it is a whole number or none"),
        (Literal["a", "b"], "c", "it is one of a, b"),
        (Literal[0, 1], True, "it is one of 0, 1"),
        (str, ["a"], "it is a text"),
        (list[str], "a", "it is a JSON list"),
    ],
    indirect=["kind"],
)
def test_a_value_of_another_kind_is_refused_with_what_it_is(kind: object, value: OptionValue, words: str) -> None:
    with pytest.raises(BadInput, match="Inductor's option x cannot be") as refused:
        checked({"x": value})
    assert refused.value.hint == words


def test_a_name_that_inductor_does_not_have_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="Inductor has no option 'max_autotun'") as refused:
        checked({"max_autotun": True})
    assert refused.value.hint == "did you mean max_autotune?"


def test_options_reach_the_backend_that_they_were_given_for_and_no_other() -> None:
    def settled(backend: str, options: dict[str, OptionValue], whose: str) -> tuple[dict[str, OptionValue], str]:
        return options_of(Target(backend, options=options, options_for=whose), find(backend))

    assert settled("inductor", {"max_autotune": 1}, "inductor") == ({"max_autotune": True}, "")
    assert settled("eager", {"max_autotune": 1}, "inductor")[1] == "eager uses no options: not max_autotune"
    assert settled("aot_eager", {"a": 1}, "aot_eager")[0] in ({}, {"a": 1})
    told = settled("inductor", {"device": "CPU"}, "openvino")
    assert told == ({}, "not used by inductor: options that were given for openvino (device)")
