"""--fail-on and --baseline mean the same on every verb: what fails, what is known, and the exit status."""

import argparse
from pathlib import Path

import msgspec
import pytest

from idbg import cli
from idbg.checking.check import Check, check, named
from idbg.cli import fail_on
from idbg.cli.commands import analyze, bench, diff, run
from idbg.cli.commands import check as check_command
from idbg.reports import baseline
from idbg.schema.errors import BadInput
from idbg.schema.programs import Failure, Program
from idbg.schema.runs import Run, fold
from idbg.views.diagnostics import diagnostics
from tests.harness.recorded import log


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def a_run(recording: str = "breaking", path: str = "breaking.py") -> Run:
    found = fold(log(recording)).last
    assert found is not None
    found.program = Program(path, cwd=str(Path.cwd()))
    return found


def watch(*argv: str, kinds: tuple[str, ...] = fail_on.OF_A_COMPARISON) -> fail_on.Policy:
    parser = argparse.ArgumentParser()
    fail_on.add_arguments(parser, kinds, "")
    return fail_on.requested(parser.parse_args(argv))


def test_without_fail_on_a_run_with_breaks_and_violations_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.status_with_policy(a_run(), watch()) == 0
    assert analyze.status(a_run(), watch()) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", ["break", "recompile", "reject", "fallback", "pad", "violation"])
def test_what_is_named_fails_on_run_and_analyze_and_each_place_is_told(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for status in (run.status_with_policy, analyze.status):
        assert status(a_run(), watch("--fail-on", kind)) == 1
        told = capsys.readouterr().err
        assert f"idbg: {kind if kind in ('break', 'recompile') else 'reject'}: " in told and "breaking.py:" in told
    assert run.status_with_policy(a_run("switched"), watch("--fail-on", kind)) == 0


def test_a_script_s_own_status_and_bad_usage_stand(capsys: pytest.CaptureFixture[str]) -> None:
    ended = a_run()
    ended.exit_status = 7
    assert run.status_with_policy(ended, watch("--fail-on", "break")) == 7
    never = Run(1, Program("no.py"), ended.target, 0.0, ended=None)
    never.ended, never.failure = "failed", Failure("input", "there is no file no.py", type="BadInput")
    assert run.status_with_policy(never, watch("--fail-on", "break", "--baseline", "k.json", "--update-baseline")) == 2
    assert not Path("k.json").exists()


def test_what_was_cancelled_is_not_green(capsys: pytest.CaptureFixture[str]) -> None:
    cancelled = a_run("switched")
    cancelled.failure = Failure("cancelled", "cancelled")
    assert run.status_with_policy(cancelled, watch("--fail-on", "break")) == 1
    baseline.write(Path("k.json"), baseline.NOTHING_KNOWN)
    assert run.status_with_policy(cancelled, watch("--baseline", "k.json")) == 1


def test_a_baseline_is_made_then_nothing_fails_then_only_what_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    known = ("--fail-on", "break", "--fail-on", "reject", "--baseline", "k.json")
    with pytest.raises(BadInput, match="there is no baseline"):
        watch(*known)
    assert run.status_with_policy(a_run(), watch(*known, "--update-baseline")) == 0
    assert run.status_with_policy(a_run(), watch(*known)) == 0
    assert "known: k.json" in capsys.readouterr().err
    worse = a_run()
    worse.violations += worse.violations[:1]
    assert run.status_with_policy(worse, watch(*known)) == 1
    told = capsys.readouterr().err
    assert told.count("idbg: reject: ") == 1 and "(1 of 4 are new)" in told
    better = a_run()
    better.violations.clear()
    assert run.status_with_policy(better, watch(*known)) == 0
    told = capsys.readouterr().err
    assert told.count("idbg: gone: reject: mock: ") == 2 and "--update-baseline removes what is gone" in told
    assert run.status_with_policy(better, watch(*known, "--update-baseline")) == 0
    assert {each.kind for each in baseline.load(Path("k.json")).known} == {"break"}


def test_a_baseline_alone_fails_on_whatever_is_new_and_keeps_other_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path in ("breaking.py", "other.py"):
        assert analyze.status(a_run(path=path), watch("--baseline", "k.json", "--update-baseline")) == 0
    assert {each.program for each in baseline.load(Path("k.json")).known} == {"breaking.py", "other.py"}
    assert analyze.status(a_run(), watch("--baseline", "k.json")) == 0
    assert analyze.status(a_run(path="third.py"), watch("--baseline", "k.json")) == 1


def test_a_failure_can_be_known_and_takes_nothing_out(capsys: pytest.CaptureFixture[str]) -> None:
    known = ("--baseline", "k.json")
    run.status_with_policy(a_run(), watch(*known, "--update-baseline"))
    before = baseline.load(Path("k.json"))
    failed = Run(1, a_run().program, a_run().target, 0.0)
    failed.ended, failed.failure = "failed", Failure("user", "boom", type="ValueError", file="breaking.py", line=3)
    assert run.status_with_policy(failed, watch(*known)) == 1
    assert "the run did not finish: findings that it lacks" in capsys.readouterr().err
    assert run.status_with_policy(failed, watch(*known, "--update-baseline")) == 0
    assert set(before.known) < set(baseline.load(Path("k.json")).known)
    assert run.status_with_policy(failed, watch(*known)) == 0


def test_wrong_numbers_fail_a_diff_unless_they_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = a_run("planted", "planted.py")
    assert diff.status(wrong, watch()) == 1
    assert diff.status(wrong, watch("--fail-on", "mismatch")) == 1
    assert "planted.py:18: kernel" in capsys.readouterr().err
    assert diff.status(wrong, watch("--baseline", "k.json", "--update-baseline")) == 0
    assert diff.status(wrong, watch("--baseline", "k.json", "--fail-on", "mismatch")) == 0
    assert wrong.diff is not None
    wrong.diff = msgspec.structs.replace(wrong.diff, outputs=())  # a verdict that no finding explains
    assert diff.status(wrong, watch("--baseline", "k.json")) == 1


def a_check(*accelerators: str) -> Check:
    return check(a_run("attention", "attention.py"), "aten", named(accelerators))


RULES = 'name = "by 7"\n[[rules]]\nkind = "alignment"\nmultiple = 7\nseverity = "{severity}"\n'


def test_a_check_fails_on_what_any_accelerator_rejects_and_knows_each_by_itself(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for severity in ("pad", "reject"):
        (folder / f"{severity}.toml").write_text(RULES.format(severity=severity))
    both = a_check("pad.toml", "reject.toml")
    assert check_command.status(both, watch()) == 0, "one takes it"
    assert check_command.status(both, watch("--fail-on", "reject")) == 1
    assert check_command.status(a_check("pad.toml"), watch("--fail-on", "reject")) == 0
    assert check_command.status(a_check("pad.toml"), watch("--fail-on", "pad")) == 1
    known = ("--baseline", "k.json")
    for name in ("pad.toml", "reject.toml"):
        assert check_command.status(a_check(name), watch(*known, "--update-baseline")) == 0
    assert check_command.status(both, watch(*known)) == 0
    assert {each.target for each in baseline.load(Path("k.json")).known} >= {"pad.toml at aten", "reject.toml at aten"}
    capsys.readouterr()
    assert check_command.status(a_check("pad.toml"), watch(*known)) == 0
    assert "gone" not in capsys.readouterr().err, "nobody asked the other accelerator"


def test_what_is_told_is_cut_and_has_no_commands_for_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    broken = a_run()
    first = broken.breaks[0]
    broken.breaks = [msgspec.structs.replace(first, file=f"f{at}\x1b[31m.py", line=at + 1) for at in range(30)]
    assert run.status_with_policy(broken, watch("--fail-on", "break")) == 1
    told = capsys.readouterr().err
    assert told.count("idbg: break: ") == fail_on.MAX_LINES + 1 and "\x1b" not in told
    assert len(diagnostics(broken)) >= 30


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["run", "x.py", "--fail-on", "slower"], "invalid choice 'slower'"),
        (["run", "x.py", "--update-baseline"], "--update-baseline has no file to write"),
        (["check", "x.py", "--baseline", "none.json"], "there is no baseline none.json"),
        (["diff", "x.py", "--baseline", "x.py"], "x.py is no baseline that can be read"),
        (["bench", "x.py", "--fail-on", "slower"], "--fail-on slower has nothing to compare with"),
    ],
)
def test_bad_usage_is_said_before_anything_runs(
    argv: list[str], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.py").write_text("raise SystemExit(9)\n")
    try:
        status = cli.main(argv)
    except SystemExit as error:  # argparse's
        status = int(str(error.code))
    assert status == 2 and says in capsys.readouterr().err
    assert not Path("debug_artifacts").exists()


def test_bench_says_slower_undecided_or_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from idbg.bench.suite import change
    from tests.harness.bench_rows import row

    def status(now: float, *caveats: str) -> int:
        current = msgspec.structs.replace(row(now), caveats=caveats)
        found = change(current, row(1.0, seed=1))
        assert found is not None
        return bench._speed([current], [found])

    assert (status(1.3), status(1.0), status(1.3, "noisy: 30 %")) == (1, 0, 3)
    told = capsys.readouterr().err
    assert "idbg: slower: a.py eager: " in told and "it is not known whether that is slower: now noisy" in told
    assert bench._speed([], None) == 3, "the database could not be read"


def test_that_no_rule_was_asked_is_said_where_a_broken_one_is_to_fail(capsys: pytest.CaptureFixture[str]) -> None:
    done = a_run()
    done.checked, done.violations = False, []
    run.status_with_policy(done, watch("--fail-on", "reject"))
    assert "checks no rules while it compiles: no rule was checked" in capsys.readouterr().err
    run.status_with_policy(done, watch("--fail-on", "mismatch"))
    assert "checks no rules" not in capsys.readouterr().err
