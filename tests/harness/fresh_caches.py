"""Programs that compile as if nothing had been compiled before: in caches of their own, once or as often as asked."""

from pathlib import Path

import pytest
import torch._inductor.codecache as codecache
from torch._dynamo.utils import counters

from idbg.schema.decisions.inductor import CacheAnswer, CacheName, CudaGraph
from idbg.schema.runs import Run


def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor's, Triton's and idbg's caches are this test's, and torch has counted nothing."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    codecache.PyCodeCache.cache_clear()
    codecache.CppPythonBindingsCodeCache.cache_clear()
    codecache.CacheBase.get_local_cache_path.cache_clear()
    counters.clear()


def answers(run: Run, cache: CacheName = "fx_graph") -> list[CacheAnswer]:
    """What this cache answered, in order."""
    return [answer for each in run.decided.of(CacheAnswer).values() for answer in each if answer.cache == cache]


def outcomes(run: Run, cache: CacheName = "fx_graph") -> list[str]:
    """Whether it was a hit or not, each time."""
    return [answer.outcome for answer in answers(run, cache)]


def cuda_graphs(run: Run) -> list[CudaGraph]:
    """What became of every CUDA graph."""
    return [graph for each in run.decided.of(CudaGraph).values() for graph in each]
