"""Which kernel is built where: on a thread, in a process of torch's pool, or in this one."""

from concurrent.futures import Future

import pytest
import torch
import torch._inductor.compile_fx  # the hooks wait for its import

from idbg.engine.compat import kernel_builds
from idbg.engine.compat.hooks import Feature
from idbg.engine.compat.kernel_builds import observe_builds

Steps = list[tuple[object, ...]]


class Listener:
    def __init__(self) -> None:
        self.steps: Steps = []

    def began(self, step: str, subject: str) -> None:
        self.steps.append(("began", step, subject))

    def ended(self, step: str) -> None:
        self.steps.append(("ended", step))

    def submitted(self, build: int, kernel: str) -> None:
        self.steps.append(("submitted", build, kernel))

    def returned(self, build: int, seconds: float | None) -> None:
        self.steps.append(("returned", build, seconds))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Future[object]:
    """What torch gives for a Triton kernel that a process of its pool builds, where there is a GPU."""
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codecache import LambdaFuture

    future: Future[object] = Future()
    monkeypatch.setattr(AsyncCompile, "triton", lambda *_, **__: LambdaFuture(lambda: None, future=future))
    return future


def test_a_kernel_of_the_pool_is_reported_once_with_its_final_name_and_its_seconds(pool: Future[object]):
    from torch._inductor.async_compile import AsyncCompile

    listener = Listener()
    with observe_builds(Feature("kernel builds"), listener):
        compiler = AsyncCompile()
        compiler.triton("triton_", "source")  # while the code is written, so that it is there early
        compiler.triton("triton_poi_fused_add_0", "source")  # as the wrapper asks for it
        pool.set_result(("kernel", 250_000))
        compiler.triton("triton_poi_fused_add_0", "source")
    assert listener.steps == [
        ("submitted", id(pool), "triton_"),
        ("submitted", id(pool), "triton_poi_fused_add_0"),
        ("returned", id(pool), 0.25),
    ]


def test_a_build_that_fails_in_the_pool_returns_without_seconds(pool: Future[object]):
    from torch._inductor.async_compile import AsyncCompile

    listener = Listener()
    with observe_builds(Feature("kernel builds"), listener):
        AsyncCompile().triton("k", "source")
        pool.set_exception(RuntimeError("ptxas"))
    assert listener.steps[-1] == ("returned", id(pool), None)


def test_torchs_threads_know_which_kernel_they_build():
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile

    with (
        observe_builds(Feature("kernel builds"), Listener()),
        config.patch(compile_threads=2),
        kernel_builds._named("cpp_fused_add_0"),
    ):
        assert AsyncCompile.submit(kernel_builds.kernel_name).result() == "cpp_fused_add_0"
    assert kernel_builds.kernel_name() == ""


def test_a_check_of_the_cpu_is_a_step():
    from torch._inductor.cpu_vec_isa import VecISA

    listener = Listener()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VecISA, "check_build", lambda isa, code: True)
        with observe_builds(Feature("kernel builds"), listener):
            assert VecISA().check_build("code")
    assert [step[:2] for step in listener.steps] == [("began", "cpu check"), ("ended", "cpu check")]


@pytest.mark.parametrize(("devices", "starts"), [({"cpu"}, 0), ({"cpu", "cuda"}, 1), (set(), 0)])
def test_the_pool_starts_where_tritons_kernels_run(
    devices: set[str], starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import async_compile

    started: list[None] = []
    monkeypatch.setattr(async_compile, "maybe_warm_pool", lambda: started.append(None))
    kernel_builds.start_pool(set(map(torch.device, devices)))
    assert len(started) == starts
