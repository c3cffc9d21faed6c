"""Is SECURITY.md true, as far as imports tell: nothing of ours unpickles, or opens a connection?"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNPICKLE = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
CONNECT = {
    "socket",
    "ssl",
    "urllib.request",
    "http.client",
    "http.server",
    "ftplib",
    "smtplib",
    "requests",
    "httpx",
    "aiohttp",
}
SOUGHT = re.compile("|".join({name.rpartition(".")[2] for name in UNPICKLE | CONNECT}))
RECORDER = "core/idbg/engine/compat/flight_recorder.py"
"""Reads the bytes in which torch describes its collectives, in the process that runs them: no file, no classes."""
BESIDE = "core/idbg/engine/minify/forks/"
"""Talks to a process of its own, by a pair of sockets without an address."""


@functools.cache
def imported() -> list[tuple[str, str]]:
    """(file, module) of every import of ours, in files that name one of those modules."""
    return list(_imported())


def _imported() -> Iterator[tuple[str, str]]:
    for path in [*(ROOT / "core" / "idbg").rglob("*.py"), *(ROOT / "idbg_tui").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if not SOUGHT.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from ((str(path.relative_to(ROOT)), alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                yield str(path.relative_to(ROOT)), node.module
                yield from ((str(path.relative_to(ROOT)), f"{node.module}.{alias.name}") for alias in node.names)


def test_nothing_of_ours_unpickles() -> None:
    found = [(file, name) for file, name in imported() if name.split(".")[0] in UNPICKLE]
    assert found == [(RECORDER, "pickle")]
    text = (ROOT / RECORDER).read_text(encoding="utf-8")
    assert not any(way in text for way in ("open(", "pickle.load", "Path(", "read_bytes")) and "find_class" in text
    loads = ("torch.load(", "allow_pickle=True", "weights_only=False")
    texts = [*(ROOT / "core" / "idbg").rglob("*.py"), *(ROOT / "idbg_tui").rglob("*.py")]
    assert [str(path) for path in texts if any(load in path.read_text(encoding="utf-8") for load in loads)] == []


def test_nothing_of_ours_opens_a_connection() -> None:
    assert [(file, name) for file, name in imported() if name in CONNECT and not file.startswith(BESIDE)] == []
    for file in (ROOT / BESIDE).glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not any(way in text for way in (".connect(", ".bind(", "AF_INET", "create_connection")), file
