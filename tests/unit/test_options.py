"""What `--option NAME=VALUE` means, and to which backend it goes."""

import pytest

from idbg.config.options import family, nested, parse
from idbg.schema.errors import BadInput
from idbg.schema.event_log import decode, encode
from idbg.schema.events import RunStarted as Started
from idbg.schema.programs import OptionValue, Program, Target


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=true", True),
        ("a=False", False),
        ("a=3", 3),
        ("a=-3", -3),
        ("a=3.5", 3.5),
        ("a=1e-3", 1e-3),
        ("a=x=y", "x=y"),
        ("a=", ""),
        ("a=none", "none"),
        ("a=null", None),
        ("a=nan", "nan"),
        ("a=12345678901234567890123", 12345678901234567890123.0),
        ('a="3"', "3"),
        ('a=["x", 2, null]', ["x", 2, None]),
        ('a={"CACHE_DIR": "c", "N": 2, "ON": true}', {"CACHE_DIR": "c", "N": 2, "ON": True}),
    ],
)
def test_an_option_has_a_typed_value(text: str, value: OptionValue) -> None:
    assert parse(text) == ("a", value)
    assert type(parse(text)[1]) is type(value)
    event = Started(run=1, program=Program("m.py"), target=Target("openvino", options={"a": value}))
    assert decode(encode(event)) == event


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_an_option_without_a_name_or_a_value_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="an option is NAME=VALUE"):
        parse(text)


@pytest.mark.parametrize(("text", "why"), [("a={x: 1}", "not JSON"), ("a=[1", "not JSON"), ("a=[[1]]", "too deeply")])
def test_a_value_that_is_no_json_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        parse(text)


def test_names_with_dots_are_tables_of_other_backends() -> None:
    given: dict[str, OptionValue] = {"device": "CPU", "config.A": 1, "config": {"B": "x"}, "config.C.D": True}
    assert nested(given) == {"device": "CPU", "config": {"B": "x", "A": 1, "C.D": True}}
    with pytest.raises(BadInput, match="cannot both be"):
        nested({"device": "CPU", "device.x": 1})


def test_ours_share_inductors_options_and_every_other_backend_has_its_own() -> None:
    assert {family(name) for name in ("aot", "inductor", "mock", "eager")} == {"inductor"}
    assert family("openvino") == "openvino"
