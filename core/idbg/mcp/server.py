"""Serve the tools over stdio with the official package `mcp`. Only `idbg mcp` imports this."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

import idbg
from idbg.mcp import command
from idbg.mcp.answering import Answer, answer
from idbg.mcp.tools import Tool, tools
from idbg.mcp.where import AllowedSessions

INSTRUCTIONS = (
    "idbg debugs programs that use torch.compile. `run` compiles a program and saves a session; the other tools read "
    "sessions. Each answer is small, names what it left out, and has the command line that prints it again. "
    "Begin with `sessions`, or with `run` on a file."
)
_EVERY = 1.0  # seconds between two progress messages
_SIGNALLED = 128  # plus the signal's number: the exit status


def serve(allowed: AllowedSessions, *, runs: bool) -> None:
    """Serve until the client disconnects, or a signal arrives. `runs`: offer the tools that run programs."""
    anyio.run(_serve, allowed, runs)


async def _serve(allowed: AllowedSessions, runs: bool) -> None:
    server = create_server(allowed, runs=runs)
    async with anyio.create_task_group() as group, stdio_server() as (reading, writing):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, _Stop(group.cancel_scope), number)
        await server.run(reading, writing, server.create_initialization_options())
        group.cancel_scope.cancel()


class _Stop:
    """Ends the server on a signal: cancels commands and waits for them; a second signal does not wait."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._ending: asyncio.Task[None] | None = None

    def __call__(self, number: int) -> None:
        if self._ending is not None:
            os._exit(_SIGNALLED + number)
        self._scope.cancel()
        self._ending = asyncio.get_running_loop().create_task(self._end(number))

    async def _end(self, number: int) -> None:
        await command.all_ended()
        os._exit(_SIGNALLED + number)  # the thread that reads stdin cannot be cancelled


def create_server(allowed: AllowedSessions, *, runs: bool) -> "Server[Any]":
    """The server of these sessions."""
    known = {name: tool for name, tool in tools().items() if runs or not tool.RUNS}

    async def listed(
        context: "ServerRequestContext[Any]", params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(name, tool) for name, tool in known.items()])

    async def called(context: "ServerRequestContext[Any]", params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            return _result(Answer(f"there is no tool {params.name!r}: there are {', '.join(known)}", failed=True))
        return _result(await answer(tool, params.name, params.arguments or {}, allowed, _Progress(context).report))

    return Server(
        "idbg", version=idbg.__version__, instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )


class _Progress:
    """Sends progress to the client, so that it does not time out on a long run."""

    def __init__(self, context: "ServerRequestContext[Any]") -> None:
        self._context = context
        self._count, self._last = 0, 0.0

    async def report(self, line: str) -> None:
        """Send a line of the command's stderr, at most one per second."""
        now = time.monotonic()
        if now - self._last < _EVERY:
            return
        self._count, self._last = self._count + 1, now
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._context.session.report_progress(self._count, message=line[:200])


def _described(name: str, tool: Tool) -> types.Tool:
    annotations = types.ToolAnnotations(
        read_only_hint=not tool.RUNS, destructive_hint=False, idempotent_hint=not tool.RUNS, open_world_hint=tool.RUNS
    )
    return types.Tool(name=name, description=tool.ABOUT, input_schema=_schema(tool), annotations=annotations)


def _schema(tool: Tool) -> dict[str, Any]:
    """The JSON schema of the arguments, with the object itself as the root."""
    (schema,), components = msgspec.json.schema_components([tool.Arguments], ref_template="#/$defs/{name}")
    name = str(schema["$ref"]).rpartition("/")[2]
    root: Mapping[str, Any] = components.pop(name)
    shown = {key: value for key, value in root.items() if key not in ("title", "description")}
    return {**shown, **({"$defs": components} if components else {})}


def _result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured or None,
        is_error=answer.failed,
    )
