import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _fresh_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test compiles anew, writes into its own folder, and sees no MOCK_* of the machine's."""
    import torch

    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("MOCK_", "IDBG_"))]:
        monkeypatch.delenv(name)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
