"""Which commit is the first that fails: real git, and a command that says what fails, so that no try imports torch."""

import os
import sys
from pathlib import Path

import pytest

from idbg.bisect.commits import first_bad
from idbg.bisect.git import Git, worktree
from idbg.bisect.job import bisected
from idbg.schema.bisection import Bisected, Question
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program
from idbg.views.bisection import answer_sentence
from tests.harness.git_history import GitHistory, eight_commits

CHECK = (sys.executable,)


@pytest.fixture
def history(tmp_path: Path) -> GitHistory:
    return eight_commits(tmp_path / "repo")


def searched(
    history: GitHistory, good: str, bad: str = "HEAD", *, path: str = "p.py", first_parent: bool = False
) -> Bisected:
    program = Program(path, cwd=str(history.folder))
    return bisected(
        Question(
            "commits",
            program,
            command=CHECK,
            good=history.names.get(good, good),
            bad=history.names.get(bad, bad),
            first_parent=first_parent,
        )
    )


def test_the_first_commit_that_fails_is_told_with_author_date_subject_and_diff_stat(history: GitHistory) -> None:
    found = searched(history, "one")
    assert found.commit is not None
    (commit,) = found.commit.commits
    assert commit.sha == history.names["five"]
    assert (commit.author, commit.subject) == ("Ada <ada@example.org>", "five")
    assert commit.date.startswith("20")
    assert "b.txt" in commit.stat
    assert "2 files changed" in commit.stat
    assert answer_sentence(found) == f"{commit.sha[:10]} is the first commit that fails (of 7 commits): five"


def test_the_users_checkout_index_head_and_files_stay_as_they_are(history: GitHistory) -> None:
    before = history.state()
    searched(history, "one")
    assert history.state() == before


def test_a_commit_that_cannot_run_is_skipped(history: GitHistory) -> None:
    found = searched(history, "one", "six")
    skipped = [one for one in found.tried if one.outcome == "other"]
    assert {one.what.split()[-1] for one in skipped} <= {"three", "merge"}
    assert skipped
    assert all("cannot be tried" in one.otherwise for one in skipped)


def test_where_all_between_cannot_run_each_of_them_may_be_it(tmp_path: Path) -> None:
    history = GitHistory(tmp_path / "repo")
    history.commit("good", "")
    history.commit("unclear 1", "raise SystemExit(125)")
    history.commit("unclear 2", "raise SystemExit(125) #")
    history.commit("bad", "raise SystemExit(1)")
    found = searched(history, "good")
    assert found.commit is not None
    assert [commit.subject for commit in found.commit.commits] == ["unclear 1", "unclear 2", "bad"]
    assert "one of 3 commits is the first that fails" in answer_sentence(found)


def test_the_guilty_one_may_be_on_the_branch_that_was_merged(tmp_path: Path) -> None:
    history = GitHistory(tmp_path / "repo")
    history.commit("one", "", flag_txt="good")
    history.git("checkout", "-q", "-b", "side")
    history.commit("side good", x_txt="x")
    history.commit("side bad", "raise SystemExit(1)")
    history.git("checkout", "-q", "main")
    history.commit("two", y_txt="y")
    history.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    history.names["merge"] = history.git("rev-parse", "HEAD")
    history.commit("three", z_txt="z")
    found = searched(history, "one")
    assert found.commit is not None
    assert found.commit.commits[0].subject == "side bad"
    found = searched(history, "one", first_parent=True)
    assert found.commit is not None
    assert found.commit.commits[0].subject == "merge"
    assert "p.py" in found.commit.commits[0].stat


def test_the_program_is_found_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    history = GitHistory(tmp_path / "repo")
    (history.folder / "deep").mkdir()
    inner = history.folder / "deep" / "p.py"
    for subject, text in (("none", ""), ("good", "import helper"), ("bad", "import helper; raise SystemExit(1)")):
        if text:
            inner.write_text(text)
            (history.folder / "deep" / "helper.py").write_text("")
        history.commit(subject)
    good = searched(history, "good", path="deep/p.py")
    assert good.commit is not None
    assert good.commit.commits[0].subject == "bad"
    none = searched(history, "none", path="deep/p.py")
    assert none.commit is None
    assert "it has no deep/p.py" in answer_sentence(none)


def test_a_folder_of_pythonpath_is_the_commits_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = GitHistory(tmp_path / "repo")
    (history.folder / "lib").mkdir()
    package = history.folder / "lib" / "package_of_commit.py"
    for subject, status in (("good", 0), ("bad", 5), ("worse", 6)):
        package.write_text(f"STATUS = {status}\n")
        history.commit(subject, "import package_of_commit as p; raise SystemExit(p.STATUS)")
    package.write_text("STATUS = 125\n")  # what is checked out now must not be met
    monkeypatch.setenv("PYTHONPATH", f"{history.folder / 'lib'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    found = searched(history, "good")
    assert found.commit is not None
    assert found.commit.commits[0].subject == "bad"


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("one", "four", "it does not fail at"),
        ("five", "six", "it fails at"),
        ("three", "six", "it fails otherwise: "),
    ],
)
def test_ends_that_are_none(history: GitHistory, good: str, bad: str, words: str) -> None:
    found = searched(history, good, bad)
    assert found.commit is None
    assert words in answer_sentence(found)


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("nothing-such", "six", "git knows no revision 'nothing-such'"),
        ("--all", "six", "git knows no revision '--all'"),
        ("side", "three", "is no ancestor of"),
        ("six", "six", "are one commit"),
        ("one", "three", "cannot be tried"),
    ],
)
def test_revisions_that_cannot_be_searched_are_refused(history: GitHistory, good: str, bad: str, words: str) -> None:
    before = history.state()
    with pytest.raises(BadInput, match=words):
        searched(history, good, bad)
    assert history.state() == before


def test_no_checkout_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("")
    with pytest.raises(BadInput, match="is in no git checkout"):
        bisected(Question("commits", Program("p.py", cwd=str(tmp_path)), command=CHECK, good="HEAD~1", bad="HEAD"))


def test_a_worktree_of_a_search_that_was_killed_goes_with_the_next(
    history: GitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = history.state()
    monkeypatch.setattr("idbg.bisect.git.os.getpid", lambda: 2**22 + 1)  # no such process can be
    left = worktree(Git(history.folder), history.names["one"])
    folder = left.__enter__().folder
    monkeypatch.undo()
    assert folder.is_dir()
    searched(history, "one")
    assert not folder.exists()
    assert history.state() == before
    with pytest.raises(ValueError, match="end"):
        left.gen.throw(ValueError("end"))  # type: ignore[attr-defined]


def test_a_search_that_is_stopped_says_which_commits_are_left_and_tidies_up(history: GitHistory) -> None:
    before = history.state()
    asked: list[str] = []
    question = Question(
        "commits", Program("p.py", cwd=str(history.folder)), command=CHECK, good=history.names["one"], bad="HEAD"
    )
    found = bisected(question, lambda what, outcome: asked.append(what), lambda: len(asked) > 5)
    assert found.stopped
    assert found.commit is not None
    assert 1 < len(found.commit.commits) < 8
    assert history.state() == before


def test_a_row_of_commits_takes_as_many_tries_as_it_has_bits() -> None:
    row = [str(number) for number in range(1, 101)]
    asked: list[str] = []

    def between(bad: str, good: list[str]) -> list[str]:
        left = [each for each in row if int(each) <= int(bad) and all(int(each) > int(one) for one in good)]
        middle = len(left) / 2 - 1
        return sorted(left, key=lambda each: abs(left.index(each) - middle))

    def fails(sha: str) -> bool:
        asked.append(sha)
        return int(sha) >= 37

    assert first_bad("100", "0", between, fails, lambda left: None) == ["37"]
    assert len(asked) <= 7
