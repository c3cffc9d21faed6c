"""Ranks of a saved session: their digests, the report in every form, and sessions of several hosts joined."""

import json
import os
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest

from idbg.cli import main
from idbg.schema.errors import BadInput
from idbg.schema.runs import fold
from idbg.session import ranks, reading
from idbg.session.merging import merge
from idbg.session.session import Session
from idbg.traces import archives
from tests.harness.rank_logs import session_of_ranks, write_digests


def other_graph(rank: int, text: str) -> str:
    return text.replace("aten.sub.Tensor", "aten.div.Tensor") if rank == 1 else text


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return session_of_ranks(tmp_path / "job", 4, change=other_graph)


def test_the_node_and_the_line_are_read_from_the_logs(job: Path) -> None:
    found = ranks.of_session(job)
    first = found.differences[0]
    assert first.kind == "graph" and first.sides[0].ranks == (1,)
    assert "aten.div.Tensor" in first.sides[0].value and "aten.sub.Tensor" in first.sides[1].value
    assert [each.ended for each in found.digests] == ["ended"] * 4
    assert sorted(map(len, found.columns)) == [1, 3]


def test_digests_are_written_and_stand_for_logs(job: Path) -> None:
    first = ranks.of_session(job)
    folder = job / "processes" / "rank2"
    assert (folder / "digest.json").exists()
    log = folder / "events.jsonl"
    log.write_bytes(b"x" * log.stat().st_size)  # of the same size: not read again
    assert ranks.of_session(job).digests == first.digests


def test_logs_are_read_once_with_progress_and_those_of_no_ranks_not_at_all(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(job / "processes" / "rank0", job / "processes" / "child-7")
    log = job / "processes" / "child-7" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"rank":0,', b"", 1))
    read: list[tuple[int, int]] = []
    first = ranks.of_session(job, show=lambda done, of: read.append((done, of)))
    assert read == [(1, 5), (2, 5), (3, 5), (4, 5)]
    assert ranks.of_session(job, show=lambda done, of: read.append((done, of))) == first
    assert len(read) == 4
    (job / "processes" / "rank2" / "digest.json").unlink()
    for line in ("reading the logs of ranks (4 of 5)", ""):
        assert main(["analyze", str(job), "--type", "ranks"]) == 0
        assert line in (told := capsys.readouterr().err) and bool(line) == ("reading" in told)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"name": "rank2", "rank": 2, "format": 99}', "\x00"])
def test_a_digest_that_is_damaged_or_of_another_format_is_made_again(job: Path, text: str) -> None:
    before = ranks.of_session(job)
    (job / "processes" / "rank2" / "digest.json").write_text(text)
    assert ranks.of_session(job).digests == before.digests


def test_a_digest_that_is_a_link_is_not_followed(job: Path, tmp_path: Path) -> None:
    write_digests(job)
    digest = job / "processes" / "rank2" / "digest.json"
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(digest.read_bytes().replace(b'"rank":2', b'"rank":3'))
    digest.unlink()
    digest.symlink_to(elsewhere)
    assert [each.rank for each in ranks.of_session(job).digests] == [0, 1, 2, 3]
    assert b'"rank":3' in elsewhere.read_bytes()


def test_a_log_that_grew_is_read_again(job: Path) -> None:
    ranks.of_session(job)
    log = job / "processes" / "rank2" / "events.jsonl"
    text = log.read_bytes()
    log.write_bytes(text.replace(b"aten.sub.Tensor", b"aten.logical_and.default"))
    assert len(ranks.of_session(job).columns) == 3


def test_a_rank_whose_log_cannot_be_read_is_not_seen(job: Path) -> None:
    (job / "processes" / "rank3" / "events.jsonl").write_text("nonsense\n")
    assert ranks.of_session(job).unseen == (3,)


def test_every_report_has_the_ranks(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(job), "--type", "ranks"]) == 0
    text = capsys.readouterr().out
    assert "ranks 0, 2-3" in text and "aten.div.Tensor" in text
    assert main(["analyze", str(job), "--type", "ranks", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ranks"]["groups"] == [[0, 2, 3], [1]]
    for name in ("job.html", "job.txt", "job.json", "job.sarif", "job.md", "job.xml"):
        assert main(["report", str(job), "-o", str(tmp_path / name)]) == 0
        assert "aten.div.Tensor" in (tmp_path / name).read_text(encoding="utf-8"), name


def test_sessions_of_two_hosts_are_joined(tmp_path: Path) -> None:
    one = session_of_ranks(tmp_path / "host0", 4, numbers=range(2))
    other = session_of_ranks(tmp_path / "host1", 4, numbers=range(2, 4), change=lambda _, text: other_graph(1, text))
    assert ranks.of_session(one).unseen == (2, 3)
    whole = merge([one, other], tmp_path / "out")
    found = ranks.of_session(whole)
    assert found.unseen == () and found.columns == ((0, 1), (2, 3))
    history = fold(reading.load(whole))
    assert [*history.processes] == ["rank0", "rank1", "rank2", "rank3"]
    assert all(report.ended is not None for report in history.processes.values())
    assert len(ranks.of_session(one).digests) == 2, "it is as it was"


def test_two_jobs_are_not_joined(tmp_path: Path) -> None:
    one = session_of_ranks(tmp_path / "one", 2)
    other = session_of_ranks(tmp_path / "other", 2)
    with pytest.raises(BadInput, match=r"rank 0 is in .*one and in .*other: these are two jobs"):
        merge([one, other], tmp_path / "out")
    third = session_of_ranks(tmp_path / "third", 8, numbers=range(4, 6))
    with pytest.raises(BadInput, match=r"of a job of 2 ranks, and .* of one of 8"):
        merge([one, third], tmp_path / "out")
    plain = session_of_ranks(tmp_path / "plain", 0)
    with pytest.raises(BadInput, match="has no rank"):
        merge([one, plain], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["zip", "gztar"])
def test_an_archive_is_joined_and_leaves_nothing_beside_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    one = session_of_ranks(tmp_path / "host0", 4, numbers=range(2))
    session_of_ranks(tmp_path / "away" / "host1", 4, numbers=range(2, 4))
    archive = shutil.make_archive(str(tmp_path / "sent"), form, tmp_path / "away")
    out = tmp_path / "out"
    assert main(["merge", str(one), archive, "--output", str(out)]) == 0
    assert "4 ranks, equal in all that is compared" in capsys.readouterr().out
    (whole,) = out.iterdir()
    assert [each.rank for each in ranks.of_session(whole).digests] == [0, 1, 2, 3]
    for again in ([archive, archive], [str(tmp_path / "away" / "host1"), archive]):
        assert main(["merge", *again, "--output", str(out)]) == 2
        wrong = capsys.readouterr().err
        assert f"{archive} is named twice" in wrong or f"and in {archive}: these are two jobs" in wrong
    assert [*out.iterdir()] == [whole]


def test_a_hostile_archive_writes_nothing_outside_and_is_refused_or_joined_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = session_of_ranks(tmp_path / "host0", 2, numbers=range(1))
    other = session_of_ranks(tmp_path / "away" / "host1", 2, numbers=range(1, 2))
    archive, out = tmp_path / "sent.tar", tmp_path / "out"
    with tarfile.open(archive, "w") as tar:
        tar.add(other, "host1")
        for name in ("../climbed", "/tmp/idbg-climbed", "host1/processes/../../../climbed"):
            tar.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("host1/processes/rank9")
        link.type, link.linkname = tarfile.SYMTYPE, str(one / "processes" / "rank0")
        tar.addfile(link)
    assert main(["merge", str(one), str(archive), "--output", str(out)]) == 0
    told = capsys.readouterr().err
    assert "3 members of sent.tar left out: its name leads out of the folder" in told and "a link" in told
    (whole,) = out.iterdir()
    assert sorted(each.name for each in (whole / "processes").iterdir()) == ["rank0", "rank1"]
    assert not list(tmp_path.glob("**/climbed")) and not Path("/tmp/idbg-climbed").exists()

    (tmp_path / "empty").mkdir()
    session_of_ranks(tmp_path / "away" / "host2", 2, numbers=range(1))
    for name, sentence in (("empty", "there is no session in"), ("away", "holds 2 sessions")):
        bad = shutil.make_archive(str(tmp_path / f"bad-{name}"), "zip", tmp_path / name)
        assert main(["merge", str(one), bad, "--output", str(out)]) == 2
        assert sentence in capsys.readouterr().err
    (tmp_path / "torn.zip").write_bytes(b"PK\x03\x04 and nothing")
    assert main(["merge", str(one), str(tmp_path / "torn.zip"), "--output", str(out)]) == 2
    assert "torn.zip cannot be unpacked" in capsys.readouterr().err
    monkeypatch.setattr(archives.unpack, "__defaults__", (1000, 20))
    assert main(["merge", str(one), str(archive), "--output", str(out)]) == 2
    assert "sent.tar holds more than" in capsys.readouterr().err
    assert [*out.iterdir()] == [whole]


def test_a_merge_follows_no_link(tmp_path: Path) -> None:
    one = session_of_ranks(tmp_path / "one", 2, numbers=range(1))
    other = session_of_ranks(tmp_path / "other", 2, numbers=range(1, 2))
    (other / "processes" / "rank1" / "secret").symlink_to("/etc/passwd")
    whole = merge([one, other], tmp_path / "out")
    assert not os.path.lexists(whole / "processes" / "rank1" / "secret")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--nproc-per-node", "0", "TRAIN"], "--nproc-per-node is 0"),
        (["run", "--nproc-per-node", "many", "TRAIN"], "--nproc-per-node is many"),
        (["run", "--nproc-per-node", "2", "missing.py"], "no file missing.py"),
        (["run", "--nnodes", "2", "TRAIN"], "--nnodes is of a job of several ranks"),
        (["run", "--nproc-per-node", "2", "--backend", "aot", "TRAIN"], "--backend is of one process"),
        (["run", "--nproc-per-node", "2", "TRAIN:step"], "ranks run a script, not the function step"),
        (["run", "--", "no-such-launcher", "train.py"], "there is no command no-such-launcher"),
        (["run"], "no program is named"),
        (["merge", "JOB"], "one session is named"),
        (["merge", "JOB", "JOB"], "is named twice"),
        (["analyze", "JOB", "--type", "ranks", "--type", "time"], "--type ranks is of all ranks"),
        (["analyze", "TRAIN", "--type", "ranks"], "is not a session"),
    ],
)
def test_bad_input_is_one_sentence(
    job: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("def step(): ...\n")
    words = [each.replace("TRAIN", "train.py").replace("JOB", str(job)) for each in arguments]
    assert main(words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert sentence in lines[0] and len(lines) == 2
    assert not (tmp_path / "debug_artifacts").exists()


def test_digests_are_strict_json(job: Path) -> None:
    write_digests(job)
    for path in job.rglob("digest.json"):
        assert msgspec.json.decode(path.read_bytes())["world_size"] == 4


def test_nothing_is_run_in_a_job_of_ranks(job: Path) -> None:
    with Session.open(job) as session, pytest.raises(BadInput, match="of a job of ranks") as refused:
        session.run()
    assert "idbg diff --nproc-per-node" in refused.value.hint


def test_a_minus_is_stdout_and_no_file(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(job), "--format", "text", "-o", "-"]) == 0
    assert "4 ranks" in capsys.readouterr().out and not (tmp_path / "-").exists()
    assert main(["report", str(job), "-o", "-"]) == 2
    assert "--format" in capsys.readouterr().err
