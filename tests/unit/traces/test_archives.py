"""An archive of traces is unpacked into the session's folder and nowhere else, as far as it is intact."""

import gzip
import io
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from idbg.schema.errors import BadInput
from idbg.schema.runs import History, fold
from idbg.session.importing import Import
from idbg.session.reading import load
from idbg.traces import archives
from idbg.traces import packed as packed_files
from tests.harness.traces import RECORDED, recordings, unpacked

NAME = "job/dedicated_log_torch_trace_x1.log"


def imported(archive: Path) -> History:
    importing = Import(archive, archive.parent / "out")
    importing.read()
    return fold(load(importing.folder))


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def trace_member() -> tuple[tarfile.TarInfo, bytes]:
    name = recordings("breaking")[0]
    packed = next((RECORDED / name).glob("*.log.gz"))
    return tarfile.TarInfo(NAME), gzip.decompress(packed.read_bytes())


def link(kind: bytes, name: str, to: str) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info, b""


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2"])
def test_a_trace_in_an_archive_is_read(suffix: str, tmp_path: Path) -> None:
    trace = unpacked(recordings("breaking")[0], tmp_path / "trace")
    archive = tmp_path / f"night{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in trace.iterdir():
                zipped.write(file, f"trace/{file.name}")
    else:
        mode = {".tar": "w", ".tar.xz": "w:xz", ".tar.bz2": "w:bz2"}.get(suffix, "w:gz")
        with tarfile.open(archive, mode) as tar:  # type: ignore[call-overload]
            tar.add(trace, "trace")
    history = imported(archive)
    assert history.last is not None and len(history.last.graphs) > 10 and not history.missing


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    packed = next((RECORDED / recordings("breaking")[0]).glob("*.log.gz"))
    history = imported(Path(shutil.copy(packed, tmp_path)))
    assert history.last is not None and len(history.last.graphs) > 10


def test_a_folder_of_compressed_files_is_read(tmp_path: Path) -> None:
    for packed in (RECORDED / "ranks-2.15").glob("*.log.gz"):
        shutil.copy(packed, tmp_path / packed.name)
    history = imported(tmp_path)
    assert sorted(history.processes) == ["rank0", "rank1"] and not history.missing


def test_files_of_zstd_are_read(tmp_path: Path) -> None:
    zstd = packed_files.zstd()
    if zstd is None:
        pytest.skip("nothing here reads zstd")
    trace = unpacked(recordings("breaking")[0], tmp_path / "trace")
    with zstd.open(tmp_path / "night.tar.zst", "wb") as file, tarfile.open(fileobj=file, mode="w|") as tar:
        tar.add(trace, "trace")
    (plain,) = trace.iterdir()
    with zstd.open(trace / f"{plain.name}.zst", "wb") as file:
        file.write(plain.read_bytes())
    plain.unlink()
    for place in (tmp_path / "night.tar.zst", trace, trace / f"{plain.name}.zst"):
        history = imported(place)
        assert history.last is not None and len(history.last.graphs) > 10 and not history.missing


def test_a_compressed_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packed = next((RECORDED / recordings("breaking")[0]).glob("*.log.gz"))
    (tmp_path / packed.name).write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    history = imported(tmp_path)
    assert history.last is not None and history.last.graphs
    assert any("is damaged, or cut off" in text for text in history.missing)


def test_a_compressed_bomb_is_read_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_files, "MOST_BYTES", 4 << 20)
    (tmp_path / "dedicated_log_torch_trace_x.log.gz").write_bytes(gzip.compress(b"\0" * (8 << 20)))
    history = imported(tmp_path)
    assert any("holds more than 4 MiB: the rest is left out" in text for text in history.missing)


def test_members_that_climb_out_are_left_out_and_said(tmp_path: Path) -> None:
    before = everything(tmp_path)
    outside = [(tarfile.TarInfo(name), b"x") for name in ("../out.log", "/tmp/idbg-evil.log", "a/../../b.log")]
    history = imported(tar_of(tmp_path / "evil.tgz", trace_member(), *outside))
    assert history.last is not None and history.last.graphs
    assert any("3 members" in text and "leads out" in text for text in history.missing)
    new = everything(tmp_path) - before - {"evil.tgz", "out"}
    assert all(path.startswith("out/trace-evil") for path in new) and not Path("/tmp/idbg-evil.log").exists()


def test_links_and_devices_are_left_out_and_a_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    fifo = tarfile.TarInfo("pipe.log")
    fifo.type = tarfile.FIFOTYPE
    members = (
        link(tarfile.SYMTYPE, "job", str(tmp_path / "target")),
        link(tarfile.LNKTYPE, "hard.log", "/etc/passwd"),
        (fifo, b""),
        trace_member(),
    )
    history = imported(tar_of(tmp_path / "links.tgz", *members))
    assert history.last is not None and history.last.graphs and not list((tmp_path / "target").iterdir())
    assert any("3 members" in text and "link" in text for text in history.missing)


def test_links_in_a_zip_are_left_out(tmp_path: Path) -> None:
    archive = tmp_path / "links.zip"
    info = zipfile.ZipInfo("passwd.log")
    info.external_attr = (0o120777 << 16) | 0
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr(info, "/etc/passwd")
        zipped.writestr(NAME, trace_member()[1])
    assert any("link" in text for text in imported(archive).missing)


def test_a_bomb_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives.unpack, "__defaults__", (1 << 20, archives.MOST_FILES))
    bomb = tar_of(tmp_path / "bomb.tgz", (tarfile.TarInfo(NAME), b"\0" * (8 << 20)))
    assert bomb.stat().st_size < 20_000
    with pytest.raises(BadInput, match="more than 1 MiB"):
        Import(bomb, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    many = tar_of(tmp_path / "many.tgz", *[(tarfile.TarInfo(f"{number}.log"), b"") for number in range(30)])
    with pytest.raises(BadInput, match="more than 20 files"):
        archives.unpack(many, tmp_path / "to", most_files=20)


def test_a_truncated_archive_is_read_as_far_as_it_is_intact(tmp_path: Path) -> None:
    whole = tar_of(tmp_path / "a.tgz", trace_member(), (tarfile.TarInfo("other.bin"), os.urandom(300_000)))
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(whole.read_bytes()[:-150_000])
    history = imported(cut)
    assert history.last is not None and history.last.graphs
    assert any("damaged" in text for text in history.missing)


@pytest.mark.parametrize("name", ["night.zip", "night.tar.gz", "night.tar", "night.tar.zst"])
def test_what_is_no_archive_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"no archive at all" * 100)
    with pytest.raises(BadInput, match="cannot be unpacked"):
        Import(tmp_path / name, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["x.log.gz", "x.log.zst"])
def test_what_is_no_compressed_file_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    if name.endswith(".zst") and packed_files.zstd() is None:
        pytest.skip("nothing here reads zstd")
    (tmp_path / name).write_bytes(b"not compressed at all" * 100)
    with pytest.raises(BadInput, match=f"{name} cannot be read: it is damaged"):
        Import(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["x.log.zst", "night.tar.zst"])
def test_without_a_reader_of_zstd_the_sentence_says_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    (tmp_path / name).write_bytes(b"(\xb5/\xfd")
    with pytest.raises(BadInput, match="unpack it with zstd -d"):
        Import(tmp_path / name, tmp_path / "out")


def test_what_may_not_be_read_says_so(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        with pytest.raises(BadInput, match="closed cannot be read: Permission denied"):
            Import(closed, tmp_path / "out")
    finally:
        if is_root:
            os.seteuid(0)


def test_an_archive_without_a_trace_is_refused(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "notes.tgz", (tarfile.TarInfo("notes.txt"), b"nothing"))
    with pytest.raises(BadInput, match="no trace in"):
        Import(archive, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
