"""The sentences about repros and searches, which the CLI, the log and the screen share."""

import pytest
from msgspec.structs import replace

from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Failure
from idbg.schema.repros import Minified, MinifyProgress, OtherFailure, Signature, Sought
from idbg.schema.session_repros import SessionRepro
from idbg.views import repros

NODE = NodeId(GraphId("0/0", "dynamo"), "cumsum")
FOUND = Minified(
    Signature("violation", type="alignment", message="cumsum"),
    path="/s/repro.py",
    reproduced=True,
    status=1,
    size=3,
    whole=1934,
    lines=28,
    minimal=True,
    guarantee="1-minimal: no node can be left out",
    calls=31,
    seconds=12.0,
    others=(OtherFailure("RuntimeError x", 2, "/s/other.py"),),
)


def test_a_result_is_told_in_one_line() -> None:
    assert repros.result_words(FOUND) == (
        "3 of 1,934 nodes, 28 lines; it fails again in a fresh process (cumsum: alignment); "
        "1-minimal: no node can be left out; 31 tries in 12.0 s; 2 other failures were met"
    )


def test_nothing_is_said_to_reproduce_that_was_not_run() -> None:
    assert "was not run" in repros.result_words(replace(FOUND, reproduced=None))
    assert "does NOT fail so in a fresh process (cumsum: alignment, exit 2)" in repros.result_words(
        replace(FOUND, reproduced=False, status=2)
    )
    assert repros.sign(True) != repros.sign(None) != repros.sign(False)


def test_what_is_not_deterministic_and_what_was_known_are_said() -> None:
    words = repros.result_words(replace(FOUND, failed=3, tried=10, known=23))
    assert "the whole failed in 3 of 10 tries" in words
    assert "31 tries in 12.0 s (23 more known from before)" in words


def test_where_nothing_fails_there_is_nothing_to_make_smaller() -> None:
    assert repros.result_words(Minified(Signature("none"))) == "nothing fails, so there is nothing to make smaller"


def test_lines_name_the_script_the_others_and_what_does_not_fail() -> None:
    told = "\n".join(repros.result_lines(replace(FOUND, passing="/s/pass.py", difference=("relu",))))
    assert "script: /s/repro.py" in told
    assert "met on the way: RuntimeError x, 2 times: /s/other.py" in told
    assert "the nearest that does not fail (it lacks relu): /s/pass.py" in told


def test_progress_says_what_is_left_and_what_it_took() -> None:
    progress = MinifyProgress(
        "shortest failing prefix", size=120, whole=1934, calls=14, known=3, budget=300, seconds=3.25, eta=12.0, others=1
    )
    assert repros.progress_words(progress) == (
        "shortest failing prefix: 120 of 1,934 nodes; 14 of 300 tries in 3.2 s, 3 more known from before; "
        "about 12 s to go; 1 other failure was met"
    )
    assert repros.progress_words(MinifyProgress("capturing", calls=1)) == "capturing: 1 try in 0.0 s"


@pytest.mark.parametrize(
    ("sought", "words"),
    [
        (Sought(), "the failure"),
        (Sought("violation", NODE, "alignment"), "alignment at cumsum"),
        (Sought("wrong"), "the wrong result"),
        (Sought("wrong", launch=2), "what launch 2 computes wrongly"),
        (Sought("node", NODE), "what feeds cumsum"),
        (Sought("break", place="m.py:3"), "the graph break at m.py:3"),
        (Sought("recompile"), "the first recompile"),
        (Sought("check", command=("python", "check.py")), "what makes `python check.py` fail"),
    ],
)
def test_what_is_sought_reads_after_a_repro_of(sought: Sought, words: str) -> None:
    assert repros.sought_words(sought) == words


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        (Signature("violation", type="alignment", message="cumsum"), "cumsum: alignment"),
        (
            Signature("compile", "inductor", "LoweringException", "no lowering"),
            "LoweringException: no lowering (in inductor)",
        ),
        (Signature("wrong", message="nan"), "NaN or infinities that eager has not"),
        (Signature("wrong", message="lost"), "not the NaN or infinities that eager has"),
        (Signature("died", type="SIGSEGV"), "killed by SIGSEGV"),
        (Signature("hung"), "it does not end"),
        (Signature("break", place="m.py:3"), "a graph break at m.py:3"),
        (Signature("break", message="why", place="if x.sum() > 0:"), "a graph break at if x.sum() > 0: why"),
        (Signature("none"), "nothing fails"),
    ],
)
def test_a_signature_is_a_few_words(signature: Signature, words: str) -> None:
    assert repros.signature_words(signature) == words


def test_the_status_of_a_kept_repro_is_what_is_known_of_it() -> None:
    begun = SessionRepro(1, 100.0, "minified", Sought())
    assert repros.status_words(begun) == "searching"
    assert repros.status_words(begun, live=False) == "never ended"
    stopped = Failure(kind="cancelled", message="cancelled")
    assert repros.status_words(replace(begun, ended=101.0, failure=stopped)) == "stopped"
    assert repros.status_words(replace(begun, ended=101.0, path="/s", failure=stopped)) == "not tried, stopped early"
    written = SessionRepro(1, 100.0, "written", Sought(), ended=101.0, path="/s/repro.py", reproduced=True, status=1)
    assert repros.tried_words(written) == "reproduces (exit 1)"
    refused = replace(written, path="", reproduced=None, status=None, failure=Failure(kind="idbg", message="no, why"))
    assert repros.tried_words(refused) == "no script: no, why"
    assert repros.kept_line(written, 400.0).endswith("run 1: the failure  reproduces, 5 min ago  /s/repro.py")


def test_an_age_has_one_unit() -> None:
    assert [repros.age(0.0, at) for at in (-1, 12, 250, 7300, 3 * 86400)] == ["0 s", "12 s", "4 min", "2 h", "3 days"]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (FOUND, "1-minimal, 3 of 1,934 nodes, 28 lines, fails so in a fresh process; 2 other failures were met"),
        (replace(FOUND, minimal=False, size=1934, others=()), "the whole, 1,934 of 1,934 nodes, 28 lines, fails so"),
        (replace(FOUND, minimal=False, reproduced=False), "the smallest so far, 3 of 1,934 nodes, 28 lines, does NOT"),
        (replace(FOUND, reproduced=None), "was not run alone"),
        (replace(FOUND, signature=Signature("none")), "written: 3 of 1,934 nodes, 28 lines, in which nothing is known"),
        (Minified(Signature("none")), "nothing fails, so there is nothing to make smaller"),
    ],
)
def test_in_little_room_it_is_said_how_small_and_whether_it_fails(found: Minified, words: str) -> None:
    assert words in repros.brief_words(found)


def test_how_far_a_search_is_can_be_told_in_pieces_of_which_the_last_matter_least() -> None:
    far = MinifyProgress("prefix", size=412, whole=1934, calls=17, budget=300, eta=40.2, others=1)
    wanted = ["prefix", "412 of 1,934 nodes", "17 of 300 tries", "about 40 s left", "1 other failure"]
    assert repros.progress_pieces(far) == wanted
    assert repros.progress_pieces(MinifyProgress("the whole")) == ["the whole"]
    assert [repros.rough(seconds) for seconds in (12.3, 125, 9000)] == ["12 s", "2 min", "2 h"]


def test_a_script_of_what_feeds_a_node_is_written_and_nothing_is_said_to_fail() -> None:
    fed = replace(FOUND, signature=Signature("none"), reproduced=None, status=0, size=2, whole=0, others=())
    assert repros.result_words(fed) == "written: 2 nodes, 28 lines, in which nothing is known to fail"
