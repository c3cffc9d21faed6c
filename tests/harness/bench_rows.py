"""Benchmark rows with samples around a latency, drawn so that each test has the same."""

import random

from idbg.schema.bench import Latency, Row


def row(center: float, spread: float = 0.02, seed: int = 0, n: int = 50, **others: object) -> Row:
    """A row of `n` samples around `center` milliseconds, with a relative `spread`."""
    random.seed(seed)
    samples = [center * random.gauss(1.0, spread) for _ in range(n)]
    return Row(program="a.py", backend="eager", latency_ms=Latency.of(samples, 1, 10, True), **others)  # type: ignore[arg-type]
