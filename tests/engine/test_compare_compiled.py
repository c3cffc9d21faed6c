"""Where does the compiled kernel of a comparison come from, and what if it cannot be built?"""

from pathlib import Path

import pytest

from idbg.engine.kerneldiff.tensors import native


@pytest.mark.slow
def test_a_corrupt_cached_kernel_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if not native.wait():
        pytest.skip(native.problem())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for content in (None, b"", b"\x7fELF" + bytes(5000)):
        if content is not None:
            (path,) = tmp_path.glob("idbg/native/*.so")
            path.unlink()  # what is loaded stays as it is
            path.write_bytes(content)
        build = native.Build()
        build.thread.join()
        assert build.kernel is not None, build.problem
    assert [path.suffix for path in tmp_path.glob("idbg/native/*")] == [".so"]


def test_without_a_compiler_torch_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    build = native.Build()
    build.thread.join()
    assert build.kernel is None
    assert "C++ compiler" in build.problem
