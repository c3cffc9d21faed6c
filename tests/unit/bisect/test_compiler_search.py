"""Which part of the compiler is the cause, asked of a compiler that is a table: no torch, no processes."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from idbg.bisect.job import bisected
from idbg.schema.bisection import (
    GRAPHS,
    PYTHON,
    Answer,
    Application,
    BackendParts,
    Bisected,
    Level,
    Question,
    Subsystem,
    SuspectPart,
    Try,
)
from idbg.schema.errors import BadInput
from idbg.schema.programs import LoweredNode, Program, Target
from idbg.schema.repros import Signature
from idbg.views.bisection import answer_sentence, part_sentence

WRONG = Signature("runtime", type="RuntimeError", message="this is wrong")
OTHER = Signature("runtime", type="KeyError", message="and this is another")
PARTS = (
    BackendParts("eager"),
    BackendParts("aot_eager"),
    BackendParts("aot_eager_decomp_partition", (Subsystem("decomposition"),)),
    BackendParts(
        "inductor",
        (
            Subsystem("pre_grad_passes"),
            Subsystem("post_grad_passes"),
            Subsystem("inductor_padding", config="inductor", setting="padding", value=False),
            Subsystem("lowerings"),
        ),
    ),
)


@dataclass
class Compiler:
    """Fails where `fails` says so of a level; its parts are applied so often."""

    fails: Callable[[Level], Signature | None]
    counts: dict[str, int] = field(default_factory=lambda: {"post_grad_passes": 19, "lowerings": 40})
    levels: list[Level] = field(default_factory=list)
    own: str = ""

    def __call__(self, asked: Try, *_: object) -> Answer:
        level = asked.level
        self.levels.append(level)
        found = self.fails(level)
        last = Application(level.applied, f"pass {level.applied}") if level.applied else None
        if level.graphs and not level.subsystem:
            last = Application(level.graphs, frame=f"{level.graphs - 1}/0", graph="dynamo")
        return Answer(found, words=str(found or ""), counts=self.counts, parts=PARTS, last=last, own=self.own)

    def asked(self, backend: str = "inductor", *, stop_after: int = 1_000) -> Bisected:
        question = Question("compiler", Program("p.py"), Target(backend=backend))
        return bisected(question, stopped=lambda: len(self.levels) >= stop_after, ask=self)


def in_inductor(part: str, first: int) -> Callable[[Level], Signature | None]:
    """The failure is of this application of a part of Inductor's."""

    def fails(level: Level) -> Signature | None:
        if level.backend not in ("", "inductor"):
            return None
        held = level.subsystem == part and level.applied is not None and level.applied < first
        return None if held else WRONG

    return fails


def test_the_application_of_a_part_is_found_by_halves() -> None:
    compiler = Compiler(in_inductor("lowerings", 23))
    found = compiler.asked()
    assert found.part is not None
    assert (found.part.backend, found.part.subsystem, found.part.of) == ("inductor", "lowerings", 40)
    assert found.part.application == Application(23, "pass 23")
    assert answer_sentence(found) == "the lowerings of inductor are the cause: application 23 of 40, pass 23"
    assert {22, 23} <= {level.applied for level in compiler.levels}  # both sides of it were tried
    assert found.signature == WRONG


def test_a_lowering_of_the_users_own_that_raises_is_the_answer_after_one_try() -> None:
    raised = LoweredNode("scale", "held.scale.default", "model.py", 14)

    def ask(asked: Try, *_: object) -> Answer:
        return Answer(WRONG, words="RuntimeError", parts=PARTS, lowering=raised)

    found = bisected(Question("compiler", Program("p.py"), Target(backend="inductor")), ask=ask)
    assert len(found.tried) == 1 and found.part is not None and found.part.lowering == raised
    where = "the lowering of held.scale.default, for node scale (model.py:14)"
    assert answer_sentence(found) == f"{where}, is the cause: it raises the failure itself"


def test_a_decomposition_is_named_as_the_op_is_called() -> None:
    what = "<OpOverload(op='held.scale', overload='default')>"
    part = SuspectPart(
        "aot_eager_decomp_partition", "decomposition", application=Application(21, what), of=32, first=21
    )
    assert part_sentence(part) == (
        "the decompositions of aot_eager_decomp_partition are the cause: application 21 of 32, held.scale.default"
    )


def test_of_several_graphs_the_guilty_one_comes_first_and_parts_are_asked_of_it() -> None:
    """Three of Inductor's graphs, the second of which is the cause, in its lowering 7 of 12 so far."""

    def fails(level: Level) -> Signature | None:
        if level.backend not in ("", "inductor") or (level.graphs is not None and level.graphs < 2):
            return None
        held = level.subsystem == "lowerings" and level.applied is not None and level.applied < 7
        return None if held else WRONG

    compiler = Compiler(fails, {"lowerings": 40, GRAPHS: 3})
    found = compiler.asked()
    assert found.part is not None
    assert (found.part.frame, found.part.graphs) == ("1/0", 3)
    assert found.part.application == Application(7, "pass 7")
    parts = [level for level in compiler.levels if level.subsystem]
    assert {level.graphs for level in parts} == {2}
    assert {level.graphs for level in compiler.levels if level.backend == "inductor" and not level.subsystem} == {1, 2}


def test_the_last_application_is_tried_too() -> None:
    found = Compiler(in_inductor("post_grad_passes", 19)).asked()
    assert found.part is not None
    assert found.part.application == Application(19, "pass 19")


def test_what_is_never_applied_is_not_tried() -> None:
    compiler = Compiler(in_inductor("lowerings", 1))
    compiler.asked()
    assert "pre_grad_passes" not in {level.subsystem for level in compiler.levels}


def test_a_setting_that_mends_it_is_named() -> None:
    def fails(level: Level) -> Signature | None:
        inductors = level.backend in ("", "inductor")
        return WRONG if inductors and level.subsystem != "inductor_padding" else None

    found = Compiler(fails).asked()
    assert answer_sentence(found) == "inductor is the cause, where padding is not False: with that it does not fail"


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (PYTHON, "the program itself is the cause"),
        ("eager", "Dynamo is the cause"),
        ("aot_eager", "AOTAutograd is the cause"),
    ],
)
def test_the_first_backend_that_fails_is_guilty(backend: str, words: str) -> None:
    order = [PYTHON, "eager", "aot_eager", "aot_eager_decomp_partition", "inductor", ""]

    def fails(level: Level) -> Signature | None:
        return WRONG if order.index(level.backend) >= order.index(backend) else None

    found = Compiler(fails).asked()
    assert answer_sentence(found).startswith(words)
    assert found.part is not None
    assert found.part.backend == backend


def test_inductor_without_a_part_is_told_as_such() -> None:
    found = Compiler(lambda level: WRONG if level.backend in ("", "inductor") else None).asked()
    assert "no part of it that torch can switch off" in answer_sentence(found)


def test_another_failure_accuses_nobody_and_is_told() -> None:
    right = in_inductor("lowerings", 3)

    def fails(level: Level) -> Signature | None:
        unclear = level.backend == "eager" or (level.subsystem == "post_grad_passes" and level.applied == 0)
        return OTHER if unclear else right(level)

    found = Compiler(fails).asked()
    assert found.part is not None
    assert found.part.subsystem == "lowerings"
    assert [one.what for one in found.others] == ["backend eager", "inductor without post_grad_passes"]
    assert found.others[0].otherwise == str(OTHER)


def test_a_program_that_fails_otherwise_without_a_compiler_is_guilty_itself() -> None:
    found = Compiler(lambda level: OTHER if level.backend == PYTHON else WRONG).asked()
    assert answer_sentence(found) == f"the program itself is the cause: it fails without torch.compile too, as {OTHER}"


def test_applications_that_cannot_be_told_apart_are_told_as_many() -> None:
    right = in_inductor("lowerings", 23)

    def fails(level: Level) -> Signature | None:
        return OTHER if level.applied in (22, 23, 24) else right(level)

    found = Compiler(fails).asked()
    assert found.part is not None
    assert (
        answer_sentence(found) == "the lowerings of inductor are the cause: application one of 22 to 25 of 40, pass 25"
    )


def test_nothing_fails() -> None:
    found = Compiler(lambda level: None).asked()
    assert found.part is None
    assert found.signature is None
    assert [one.what for one in found.tried] == ["the program as it is", "its numbers, compared with eager"]
    assert "there is nothing to find" in answer_sentence(found)


def test_a_search_that_is_stopped_says_what_is_known() -> None:
    compiler = Compiler(in_inductor("lowerings", 23))
    found = compiler.asked(stop_after=9)
    assert found.stopped
    assert len(found.tried) == 9
    assert answer_sentence(found).startswith("stopped after 9 tries: the lowerings of inductor are the cause")
    assert found.part is not None


def test_a_search_that_is_stopped_early_does_not_say_that_no_part_is_guilty() -> None:
    found = Compiler(in_inductor("lowerings", 23)).asked(stop_after=6)
    assert answer_sentence(found) == "stopped after 6 tries: it is in inductor, and which part of that is not known yet"


@pytest.mark.parametrize(("backend", "own"), [("openvino", ""), ("inductor", "openvino")])
def test_a_foreign_backend_and_one_of_the_program_have_no_parts(backend: str, own: str) -> None:
    compiler = Compiler(lambda level: WRONG if level.backend in ("", "openvino") else None, own=own)
    found = compiler.asked(backend)
    assert answer_sentence(found) == "the backend openvino is the cause"
    assert [level.backend for level in compiler.levels] == ["", PYTHON, "eager", "aot_eager"]


def test_what_cannot_be_tried_at_all_is_refused() -> None:
    def ask(*_: object) -> Answer:
        return Answer(cannot="there is no function of that name")

    with pytest.raises(BadInput, match="no function of that name"):
        bisected(Question("compiler", Program("p.py"), Target()), ask=ask)
