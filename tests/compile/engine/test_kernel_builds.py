"""Which kernel is built where, as torch hands it over: to a thread, to a process of its pool, or to nobody."""

from concurrent.futures import Future

import pytest

from idbg.engine.compat import kernel_builds
from idbg.engine.compat.kernel_builds import builds_heard

Told = list[tuple[object, ...]]


class Listener:
    def __init__(self) -> None:
        self.told: Told = []

    def began(self, name: str, what: str) -> None:
        self.told.append(("began", name, what))

    def ended(self, name: str) -> None:
        self.told.append(("ended", name))

    def handed_over(self, build: int, kernel: str) -> None:
        self.told.append(("handed over", build, kernel))

    def came_back(self, build: int, seconds: float | None) -> None:
        self.told.append(("came back", build, seconds))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Future[object]:
    """What torch gives for a Triton kernel that a process of its pool builds, where there is a GPU."""
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.codecache import LambdaFuture

    future: Future[object] = Future()
    monkeypatch.setattr(AsyncCompile, "triton", lambda *_, **__: LambdaFuture(lambda: None, future=future))
    return future


def test_a_kernel_of_the_pool_is_told_once_with_its_real_name_and_the_seconds_that_it_took(pool: Future[object]):
    from torch._inductor.async_compile import AsyncCompile

    listener = Listener()
    with builds_heard(listener):
        compiler = AsyncCompile()
        compiler.triton("triton_", "source")  # while the code is written, so that it is there early
        compiler.triton("triton_poi_fused_add_0", "source")  # as the wrapper asks for it
        pool.set_result(("kernel", 250_000))
        compiler.triton("triton_poi_fused_add_0", "source")
    assert listener.told == [
        ("handed over", id(pool), "triton_"),
        ("handed over", id(pool), "triton_poi_fused_add_0"),
        ("came back", id(pool), 0.25),
    ]


def test_a_build_that_fails_in_the_pool_comes_back_without_seconds(pool: Future[object]):
    from torch._inductor.async_compile import AsyncCompile

    listener = Listener()
    with builds_heard(listener):
        AsyncCompile().triton("k", "source")
        pool.set_exception(RuntimeError("ptxas"))
    assert listener.told[-1] == ("came back", id(pool), None)


def test_torchs_threads_know_which_kernel_they_build():
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile

    with builds_heard(Listener()), config.patch(compile_threads=2), kernel_builds._named("cpp_fused_add_0"):
        assert AsyncCompile.submit(kernel_builds.what).result() == "cpp_fused_add_0"
    assert kernel_builds.what() == ""


def test_a_check_of_the_cpu_is_told_as_such():
    from torch._inductor.cpu_vec_isa import VecISA

    listener = Listener()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VecISA, "check_build", lambda isa, code: True)
        with builds_heard(listener):
            assert VecISA().check_build("code")
    assert [told[:2] for told in listener.told] == [("began", "cpu check"), ("ended", "cpu check")]
