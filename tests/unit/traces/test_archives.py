"""An archive of traces is unpacked into the session's folder and nowhere else, as far as it is intact."""

import bz2
import errno
import gzip
import io
import os
import shutil
import sys
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from idbg.config.settings import Keeping
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.runs import History, fold
from idbg.session import removal
from idbg.session.importing import Import
from idbg.session.index import sessions
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


def damaged(archive: Path, old: bytes, new: bytes) -> Path:
    content = archive.read_bytes()
    assert old in content and len(old) == len(new)
    archive.write_bytes(content.replace(old, new))
    return archive


def zip_of(path: Path, *names: str) -> Path:
    """An intact trace, and before it an empty file of each name."""
    with zipfile.ZipFile(path, "w") as zipped:
        for name in names:
            zipped.writestr(name, b"")
        zipped.writestr(NAME, trace_member()[1])
    return path


def bz2_with_a_flipped_bit(folder: Path) -> Path:
    noise = tarfile.TarInfo("noise.bin"), os.urandom(2 << 20)
    (plain := tar_of(folder / "plain.tgz", trace_member(), noise)).rename(folder / "plain")
    content = bytearray(bz2.compress(gzip.decompress((folder / "plain").read_bytes())))
    content[len(content) - 300_000] ^= 4
    (archive := folder / "flipped.tar.bz2").write_bytes(content)
    assert not plain.exists()
    return archive


def a_header_that_is_none(folder: Path) -> Path:
    tar_of(folder / "plain.tgz", trace_member(), (tarfile.TarInfo("after.txt"), b"x" * 600)).rename(folder / "plain")
    plain = gzip.decompress((folder / "plain").read_bytes())
    (archive := folder / "header.tar").write_bytes(plain.replace(b"after.txt\0", b"after.tx\xff\xff"))
    return archive


def a_long_path(folder: Path) -> Path:
    return tar_of(folder / "long.tgz", (tarfile.TarInfo("/".join(["x" * 200] * 30)), b"x"), trace_member())


def a_name_that_is_not_utf8(folder: Path) -> Path:
    return damaged(zip_of(folder / "name.zip", "\u00e9t\u00e9.txt"), "\u00e9t\u00e9".encode(), b"\xe9t\xe9\xe9\xe9")


def an_offset_of_another_file(folder: Path) -> Path:
    archive = zip_of(folder / "offset.zip", "first.txt")
    content = bytearray(archive.read_bytes())
    at = content.index(b"PK\1\2") + 42
    content[at : at + 4] = (7).to_bytes(4, "little")
    archive.write_bytes(content)
    return archive


DAMAGES = (
    *(bz2_with_a_flipped_bit, a_header_that_is_none, a_long_path, a_name_that_is_not_utf8, an_offset_of_another_file),
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_intact_trace_in_a_damaged_archive_is_read(damage: Callable[[Path], Path], tmp_path: Path) -> None:
    history = imported(damage(tmp_path))
    assert history.last is not None and len(history.last.graphs) > 10
    assert damage is a_name_that_is_not_utf8 or any("left out" in text for text in history.missing)


def test_a_header_of_any_size_is_not_held_in_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x.log")
    info.pax_headers = {"comment": "x" * (40 << 20)}
    with tarfile.open(tmp_path / "pax.tgz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b""))
    tracemalloc.start()
    with pytest.raises(BadInput, match="a header of it takes more than 16 MiB"):
        archives.unpack(tmp_path / "pax.tgz", tmp_path / "to")
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()


def test_links_count_as_files(tmp_path: Path) -> None:
    links = [link(tarfile.SYMTYPE, f"{number}", "x") for number in range(30)]
    with pytest.raises(BadInput, match="more than 20 files"):
        archives.unpack(tar_of(tmp_path / "links.tgz", *links), tmp_path / "to", most_files=20)


def test_a_disk_that_is_full_ends_an_import_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(archive: Path, to: Path) -> list[str]:
        to.mkdir()
        (to / "half").write_bytes(b"x")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archives, "unpack", is_full)
    with pytest.raises(OutputError, match=r"cannot unpack .*: No space left on device"):
        Import(tar_of(tmp_path / "night.tgz", trace_member()), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_an_import_that_is_stopped_leaves_nothing_or_a_session_that_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, seen = tar_of(tmp_path / "night.tgz", trace_member()), []
    unpack = archives.unpack

    def stopped(archive: Path, to: Path) -> list[str]:
        unpack(archive, to)
        seen.extend(sessions(to.parent.parent))  # as another process sees it meanwhile
        raise KeyboardInterrupt

    monkeypatch.setattr(archives, "unpack", stopped)
    with pytest.raises(KeyboardInterrupt):
        Import(archive, tmp_path / "out")
    assert len(seen) == 1 and not list((tmp_path / "out").iterdir())
    monkeypatch.undo()
    importing = Import(archive, tmp_path / "out")

    def stop(read: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importing.read(stop)
    removal.remove(importing.folder)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_imported_session_can_be_removed(is_packed: bool, tmp_path: Path) -> None:
    trace = tar_of(tmp_path / "night.tgz", trace_member()) if is_packed else RECORDED / "ranks-2.15"
    importing = Import(trace, tmp_path / "out")
    importing.read()
    (listed,) = sessions(tmp_path / "out")
    (gone,) = removal.superfluous([listed], Keeping(days=1), time.time() + 10 * 86400)
    removal.remove(Path(gone.folder))
    assert not list((tmp_path / "out").iterdir())


def test_an_archive_without_a_trace_is_refused(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "notes.tgz", (tarfile.TarInfo("notes.txt"), b"nothing"))
    with pytest.raises(BadInput, match="no trace in"):
        Import(archive, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
