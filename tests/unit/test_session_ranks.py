"""Ranks of a saved session: their digests, the report in every form, and sessions of several hosts joined."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from idbg.cli import main
from idbg.schema.errors import BadInput
from idbg.schema.runs import fold
from idbg.session import ranks, reading
from idbg.session.merging import merge
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
