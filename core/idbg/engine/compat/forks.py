"""Let a fork of a process that has compiled compile too."""

import sys


def forget_threads() -> None:
    """Forget Inductor's pool of threads, which are not in a fork: torch forgets its other pools alone, and a C++ kernel
    would wait for a thread for ever. Torch 2.15 has `AsyncCompile.pool`; without it there is nothing to forget.
    """
    inductor = sys.modules.get("torch._inductor.async_compile")
    pool = getattr(getattr(inductor, "AsyncCompile", None), "pool", None)
    clear = getattr(pool, "cache_clear", None)
    if clear is not None:
        clear()
