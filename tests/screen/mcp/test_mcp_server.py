"""`idbg mcp`, asked by the official package's own client: each tool of a recorded session, and a real run."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import idbg
from idbg import cli
from idbg.cli import parsing
from idbg.mcp.bounded import LIMIT
from idbg.mcp.tools import tools
from tests.harness.rank_logs import session_of_ranks
from tests.harness.recorded import RECORDINGS

mcp = pytest.importorskip("mcp")
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
TINY = """
import torch

def program():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv1d(2, 2, 3), torch.nn.ReLU()).eval(), (torch.randn(1, 2, 8),)
"""


@asynccontextmanager
async def client(folder: Path, *flags: str) -> AsyncIterator[Any]:
    """A session of the client with `idbg mcp` in this folder."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}/core:{ROOT}", "IDBG_SETTINGS": str(folder / "settings.toml")}
    (folder / "settings.toml").touch()
    asked = StdioServerParameters(
        command=sys.executable, args=["-m", "idbg", "mcp", *flags], env=environ, cwd=str(folder)
    )
    with (folder / "stderr.txt").open("w") as errors:
        async with stdio_client(asked, errlog=errors) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            yield session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where two sessions were recorded."""
    for name in ("resnet", "attention"):
        place = tmp_path / "debug_artifacts" / f"{name}-1"
        place.mkdir(parents=True)
        (place / "events.jsonl").write_bytes((RECORDINGS / f"{name}.jsonl").read_bytes())
    return tmp_path


def facts(result: Any) -> dict[str, Any]:
    """What a tool told, after what holds for every answer was checked."""
    told = result.structured_content
    (text,) = result.content
    assert not result.is_error, text.text
    assert len(json.dumps(told, ensure_ascii=False)) < LIMIT + 3000 and len(text.text) < 3 * LIMIT
    words = shlex.split(told["command"])
    assert words[0] == "idbg" and text.text.endswith(f"Shown again by: {told['command']}")
    ours, _ = cli.split(words[1:])
    parsing.parsed(ours)  # the command line is one
    assert isinstance(told["facts"], dict)
    return told["facts"]


async def test_every_reading_tool_tells_of_a_recorded_session(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with client(folder) as session:
        listed = (await session.list_tools()).tools
        assert {tool.name for tool in listed} == tools().keys()
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed)

        found = facts(await session.call_tool("sessions", {}))["sessions"]
        assert {each["name"] for each in found} == {"resnet-1", "attention-1"}
        broken = facts(await session.call_tool("violations", {"session": "resnet-1", "limit": 3}))["violations"]
        assert all(len(each["nodes"]) == len(set(each["nodes"])) <= each["count"] for each in broken)
        assert len(broken) == 3 and broken[0]["rule"] == "unsupported_ops" and broken[0]["nodes"]
        around = facts(await session.call_tool("graph", {"session": "resnet-1", "node": "relu_1", "depth": 1}))["nodes"]
        assert {each["distance"] for each in around} == {0, 1}
        kernels = facts(await session.call_tool("kernel", {"session": "resnet-1"}))["kernels"]
        name = next(each["name"] for each in kernels if each["language"] != "extern")
        result = await session.call_tool("kernel", {"session": "resnet-1", "name": name})
        assert "#pragma" in facts(result)["source"] and "#pragma" in result.content[0].text
        assert facts(result)["wrapper_lines"] and "launches" not in facts(result)
        told = facts(await session.call_tool("decisions", {"session": "resnet-1", "kinds": ["breaks", "fusion"]}))
        assert told.keys() == {"breaks", "fusion"}
        result = await session.call_tool("compare", {"session": "resnet-1", "other": "attention-1"})
        assert facts(result)["runs"]

        again = shlex.split(result.structured_content["command"])[1:]
    assert cli.main([*again, "--json"]) == 0  # and it works
    assert json.loads(capsys.readouterr().out)["schema"] == "idbg.compare/1"
    assert (folder / "stderr.txt").read_text() == ""


async def test_errors_are_the_tools_with_the_sentence_and_what_to_do(folder: Path) -> None:
    outside = folder / "outside-1"
    (folder / "debug_artifacts" / "attention-1").rename(outside)
    (folder / "debug_artifacts" / "link-1").symlink_to(outside)
    asked = [
        ("violations", {"session": "resent-1"}, "there is no session resent-1\ndid you mean resnet-1?"),
        ("violations", {"session": str(outside)}, "lies outside of"),
        ("violations", {"session": "link-1"}, "lies outside of"),
        ("violations", {"session": "debug_artifacts/../outside-1"}, "lies outside of"),
        ("graph", {"session": "resnet-1", "node": "rleu_1"}, "no graph has a node 'rleu_1'\ndid you mean relu_1"),
        ("graph", {"session": "resnet-1", "node": "--depth=3"}, "'--depth=3' is not a name"),
        ("kernel", {"session": "resnet-1", "name": "nothing"}, "there is no kernel 'nothing'"),
        ("graph", {"depth": 99}, "graph: Expected `int` <= 20"),
        ("graph", {"nod": "x"}, "unknown field `nod`"),
        ("run", {"program": "--output=/etc"}, "is not a name"),
        ("run", {"program": "nowhere.py"}, "no file nowhere.py"),
        ("fly", {}, "there is no tool 'fly'"),
    ]
    async with client(folder) as session:
        for name, given, said in asked:
            result = await session.call_tool(name, given)
            assert result.is_error and said in result.content[0].text, result.content[0].text
    async with client(folder, str(outside), "--read-only") as session:
        assert facts(await session.call_tool("violations", {"session": str(outside)})) is not None
        result = await session.call_tool("run", {"program": "x.py"})
        assert result.is_error and "there is no tool 'run'" in result.content[0].text


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
async def test_a_program_is_run_and_told_and_can_be_looked_into(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)
    words: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        words.append(message or "")

    async with client(tmp_path) as session:
        result = await session.call_tool("run", {"program": "tiny.py", "backend": "mock"}, progress_callback=heard)
        told = facts(result)
        assert told["verdict"] == "violations" and told["violations"][0]["rule"] == "unsupported_ops"
        assert Path(tmp_path, told["session"]).is_dir() and words
        broken = facts(await session.call_tool("violations", {}))["violations"]
        assert broken[0]["found"] == told["violations"][0]["found"]
    assert (tmp_path / "stderr.txt").read_text() == ""


@pytest.mark.slow
async def test_a_run_that_nobody_waits_for_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    import anyio

    (tmp_path / "sleeping.py").write_text(
        "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(300)\n"
    )
    async with client(tmp_path) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(session.call_tool, "run", {"program": "sleeping.py"})
            with anyio.fail_after(120):
                while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                    await anyio.sleep(0.1)
            group.cancel_scope.cancel()
        pid = int((tmp_path / "pid").read_text())
        with anyio.fail_after(30):
            while Path(f"/proc/{pid}").exists():
                await anyio.sleep(0.1)
        assert (await session.list_tools()).tools  # and the server goes on


class Raw:
    """`idbg mcp` as a process that signals are sent to, and what a client writes to it."""

    def __init__(self, folder: Path) -> None:
        (folder / "settings.toml").touch()
        environ = {**os.environ, "PYTHONPATH": f"{ROOT}/core:{ROOT}", "IDBG_SETTINGS": str(folder / "settings.toml")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "idbg", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environ,
        )
        who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        self.write({"id": 1, "method": "initialize", "params": who})
        assert self.process.stdout is not None and b'"id":1' in self.process.stdout.readline().replace(b" ", b"")
        self.write({"method": "notifications/initialized"})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(number: signal.Signals, tmp_path: Path) -> None:
    server = Raw(tmp_path)
    try:
        server.process.send_signal(number)
        assert server.process.wait(60) == 128 + number  # while its stdin is open, and nothing comes
    finally:
        server.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_with_the_server_its_run_and_the_worker_end(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "sleeping.py").write_text(
        "import os, pathlib, time\n"
        "pathlib.Path('new').write_text(f'{os.getpid()} {os.getppid()}')\npathlib.Path('new').rename('pids')\n"
        "time.sleep(300)\n"
    )
    server = Raw(tmp_path)
    try:
        called = {"name": "run", "arguments": {"program": "sleeping.py"}}
        server.write({"id": 2, "method": "tools/call", "params": called})
        wait_for(lambda: (tmp_path / "pids").exists(), 120)
        worker, run = (tmp_path / "pids").read_text().split()
        server.process.send_signal(number)
        server.process.wait(60)
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (worker, run)), 60)
    finally:
        server.close()


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


async def test_processes_are_listed_and_each_is_read_and_ranks_are_compared(folder: Path) -> None:
    def other_graph(rank: int, text: str) -> str:
        return text.replace("aten.sub.Tensor", "aten.div.Tensor") if rank == 1 else text

    job = session_of_ranks(folder / "debug_artifacts" / "job-1", 3, change=other_graph)
    async with client(folder) as session:
        listed = facts(await session.call_tool("sessions", {"find": "job-1"}))["sessions"]
        assert [(each["processes"], each["said"]) for each in listed] == [(3, "3 ranks: 2 violations (backward)")]
        found = facts(await session.call_tool("processes", {"session": "job-1", "limit": 2}))["processes"]
        assert [(each["name"], each["rank"], each["state"]) for each in found] == [
            ("rank0", 0, "ended"),
            ("rank1", 1, "ended"),
        ]
        result = await session.call_tool("ranks", {"session": "job-1"})
        differences = facts(result)["differences"]
        assert "rank 1" in differences[0]["sentence"] and differences[0]["level"] == "warning"
        for tool in ("graph", "kernel", "decisions", "violations"):
            assert facts(await session.call_tool(tool, {"session": "job-1/rank1"}))
        compared = await session.call_tool("compare", {"session": "job-1/rank1", "other": "job-1/rank0"})
        assert facts(compared)["runs"]
        result = await session.call_tool("graph", {"session": "job-1/rank7"})
        assert result.is_error and "the session job-1 has no process rank7" in result.content[0].text
        outside = folder / "outside"
        (job / "processes" / "rank1").rename(outside)
        (job / "processes" / "rank1").symlink_to(outside)
        result = await session.call_tool("graph", {"session": "job-1/rank1"})
        assert result.is_error and "has no process rank1" in result.content[0].text
    assert b"rank1" in idbg.report(job, format="text")
    assert b"mlp_train" in idbg.report(job / "rank0", format="text")
