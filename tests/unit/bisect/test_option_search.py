"""Which options make it fail, asked of a program that is a rule about options: no torch, no processes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from idbg.bisect.job import bisected
from idbg.bisect.options import of_file, of_texts, with_options
from idbg.schema.bisection import Answer, Bisected, OptionSet, Question, Try
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Signature
from idbg.views.bisection import answer_sentence

WRONG = Signature("wrong")
DEAD = Signature("died", type="SIGSEGV")


@dataclass
class OptionsProgram:
    """Fails by its options."""

    fails: Callable[[OptionSet], Signature | None]
    draws: dict[int, OptionSet] = field(default_factory=dict)
    tried: list[OptionSet] = field(default_factory=list)

    def __call__(self, asked: Try, *_: object) -> Answer:
        if asked.seed is not None:
            return Answer(drawn=self.draws[asked.seed])
        options = {**asked.target.options, **asked.settings}
        self.tried.append(options)
        failed = self.fails(options)
        return Answer(failed, words=str(failed or ""))

    def between(self, one: OptionSet, two: OptionSet) -> Bisected:
        question = Question("options", Program("p.py"), Target(), sets=(one, two), names=("one", "two"))
        return bisected(question, ask=self)


def when(**needed: object) -> Callable[[OptionSet], Signature | None]:
    def fails(options: OptionSet) -> Signature | None:
        return WRONG if needed.items() <= options.items() else None

    return fails


MANY: OptionSet = {f"option_{number}": number for number in range(20)}


def test_one_option_alone() -> None:
    found = OptionsProgram(when(option_7=7)).between(MANY, {})
    assert answer_sentence(found) == "it fails with option_7=7 alone (of 20 differences)"


def test_two_options_together() -> None:
    found = OptionsProgram(when(option_2=2, option_17=17)).between(MANY, {})
    assert answer_sentence(found) == "it fails only with option_17=17 and option_2=2 together (of 20 differences)"
    assert found.options[0].minimal


def test_either_set_may_be_the_failing_one_and_what_they_share_stays() -> None:
    program = OptionsProgram(when(a=1, shared=5))
    found = program.between({"a": 0, "shared": 5}, {"a": 1, "b": 2, "shared": 5})
    assert answer_sentence(found) == "it fails with a=1 alone (of 2 differences); with a=0 it does not"
    assert all(options["shared"] == 5 for options in program.tried)


def test_an_option_that_is_missing_may_be_what_fails() -> None:
    found = OptionsProgram(lambda options: None if "safe" in options else WRONG).between({}, {"safe": True, "b": 1})
    assert [one.name for one in found.options[0].options] == ["safe"]
    assert "safe unset" in answer_sentence(found)


def test_another_failure_does_not_accuse() -> None:
    def fails(options: OptionSet) -> Signature | None:
        return DEAD if len(options) in (1, 2) else when(option_3=3)(options)

    found = OptionsProgram(fails).between(MANY, {})
    assert len(found.options[0].options) == 3
    assert found.others


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        (lambda options: WRONG, "it fails under both alike"),
        (lambda options: None, "it does not fail under either"),
        (lambda options: WRONG if options else DEAD, "it fails under both, but not alike"),
    ],
)
def test_two_sets_that_do_not_differ_in_what_comes_of_them(
    fails: Callable[[OptionSet], Signature | None], words: str
) -> None:
    found = OptionsProgram(fails).between({"a": 1}, {})
    assert not found.options
    assert answer_sentence(found).startswith(words)


def test_drawn_sets_are_each_bisected_and_what_is_known_is_not_drawn_again() -> None:
    draws: dict[int, OptionSet] = {0: {"a": 1, "b": 2, "c": 3}, 1: {"b": 2, "c": 3}, 2: {"c": 3, "d": 4}}
    program = OptionsProgram(lambda options: WRONG if "b" in options else DEAD if "d" in options else None, draws)
    found = bisected(Question("fuzz", Program("p.py"), Target(), draws=3), ask=program)
    assert [[one.name for one in each.options] for each in found.options] == [["b"], ["d"]]
    assert answer_sentence(found) == "2 of 3 drawn option sets make it fail"


def test_a_program_that_fails_anyway_is_not_drawn_for() -> None:
    found = bisected(Question("fuzz", Program("p.py"), Target(), draws=3), ask=OptionsProgram(lambda options: WRONG))
    assert answer_sentence(found).startswith("it fails without any option")


def test_a_file_of_options(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        "epilogue_fusion = true\n[triton]\ncudagraphs = true\n[inductor]\nmax_fusion_size = 8\n"
        '[dynamo]\nsuppress_errors = true\n[target]\nbackend = "aot_eager"\ndynamic = true\n'
    )
    options = of_file(file)
    assert options == {
        "epilogue_fusion": True,
        "triton.cudagraphs": True,
        "max_fusion_size": 8,
        "dynamo.suppress_errors": True,
        "target.backend": "aot_eager",
        "target.dynamic": True,
    }
    asked = with_options(Try(Program("p.py")), options)
    assert (asked.target.backend, asked.target.dynamic) == ("aot_eager", True)
    assert asked.settings == {"dynamo.suppress_errors": True}
    assert set(asked.target.options) == {"epilogue_fusion", "triton.cudagraphs", "max_fusion_size"}


@pytest.mark.parametrize("text", ["a = ", "a = 2020-01-01", "[target]\nno = 1", "[target]\ndynamic = 3"])
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(BadInput):
        of_file(tmp_path / "a.toml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        of_file(tmp_path / "none.toml")


def test_a_target_has_no_such_thing() -> None:
    with pytest.raises(BadInput, match="a target has no 'speed'"):
        of_texts(["target.speed=3"])


def test_the_record_has_no_sentence_and_that_of_an_older_session_stays() -> None:
    note = "it fails under both alike"
    assert answer_sentence(Bisected("options", note=note)) == note
    assert answer_sentence(Bisected("options", "what an older idbg wrote", note=note)) == "what an older idbg wrote"
