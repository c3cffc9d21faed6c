"""Do the worker's requests where the engine does not load with this torch: run the program, and read torch's trace.

The program runs in a process of its own that loads nothing of the engine: `python -m idbg.worker.traced REQUEST`.
"""

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from idbg.accelerators.parse import parse
from idbg.config.program_function import defines_function
from idbg.schema import events
from idbg.schema.errors import exception_text
from idbg.schema.event_base import RunEvent
from idbg.schema.events import RunEnded, SessionEvent
from idbg.schema.programs import Failure, Target
from idbg.traces import sources
from idbg.traces.process import Opening
from idbg.traces.trace_file import TraceFile
from idbg.worker.protocol import Compile, EditKernel, Ended, Request, decode, encode, failed

_INSTEAD = {"aot": "inductor", "mock": "aot_eager", "aoti": "inductor"}
"""Backends of the engine, and those of torch that compile in their place."""
_POLL = 0.1  # seconds
_OWN = events.SessionOpened | events.RunStarted | events.WorkerStarted  # of an import: the session has them


class TracedJobs:
    """Runs programs whose compiles are known by torch's trace alone. `why`: what cannot be loaded."""

    def __init__(self, emit: Callable[[SessionEvent], None], why: str) -> None:
        self._emit, self._why = emit, why

    def is_spent(self, request: Compile | EditKernel) -> bool:
        """Never: each program has a process of its own."""
        return False

    def do(self, request: Request) -> Ended:
        """Run a program; any other request ends with the reason why it cannot be done."""
        began = time.monotonic()
        if not isinstance(request, Compile) or request.comparison is not None:
            return failed(request, Failure(kind="idbg", message=f"torch's trace alone is not enough: {self._why}"))
        try:
            return self._run(request, began)
        except KeyboardInterrupt:
            failure = Failure(kind="cancelled", message="cancelled", hint="run it again when you like")
        except OSError as error:
            failure = Failure(kind="idbg", message=exception_text(error), type=type(error).__name__)
        return failed(request, failure, time.monotonic() - began)

    def _run(self, request: Compile, began: float) -> RunEnded:
        ended = events.RunEnded(run=request.run, verdict="clean", seconds=0.0)

        def emit(event: SessionEvent) -> None:
            nonlocal ended
            if isinstance(event, RunEnded):
                ended = event
            elif not isinstance(event, _OWN):
                self._emit(replace(event, run=request.run) if isinstance(event, RunEvent) else event)

        if (instead := _INSTEAD.get(name := request.target.backend)) is not None:
            text = f"the backend {name} is not loaded: where the program names no backend, {instead} compiles"
            self._emit(events.Noted(level="warning", text=text))
        folder = Path(tempfile.mkdtemp(prefix="idbg-trace-"))
        command = [sys.executable, "-c", f"from {__name__} import main; main()", encode(request).decode()]
        process = subprocess.Popen(command, env={**os.environ, "TORCH_TRACE": str(folder)})
        try:
            session = Path(request.session) if request.session else folder
            opening = Opening(request.program, request.target, session, parse(request.target.rules))
            trace, is_over = None, False
            while not is_over:
                is_over = process.poll() is not None
                own = (path for path in sources.parts_of(folder, "trace") if _is_of(path, process.pid))
                if trace is None and (path := next(own, None)) is not None:
                    trace = TraceFile(path, opening, emit)
                for _ in trace.steps(is_whole=is_over) if trace is not None else ():
                    pass
                time.sleep(0 if is_over else _POLL)
            if trace is not None:
                trace.end()
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)
        failure = self._failure(process.returncode, is_compiled=trace is not None)
        return replace(
            ended,
            run=request.run,
            verdict="failed" if failure is not None else ended.verdict,
            seconds=time.monotonic() - began,
            failure=failure,
            exit_status=max(process.returncode, 0),
        )

    def _failure(self, status: int, *, is_compiled: bool) -> Failure | None:
        if status:
            hint = "what it printed says why"
            return Failure(kind="user", message=f"the program ended with status {status}", hint=hint)
        if not is_compiled:
            return Failure(kind="user", message="nothing was compiled", hint="call torch.compile in the program")
        return None


def _is_of(path: Path, pid: int) -> bool:
    try:
        return sources.identity_of(path).pid == pid
    except OSError:
        return False


def main() -> None:
    """Run the program of the request as `python FILE` does, or compile what its function returns."""
    request = decode(sys.argv[1].encode())
    assert isinstance(request, Compile)
    program = request.program
    os.chdir(program.cwd or os.getcwd())
    sys.argv = [program.path, *program.argv]
    sys.path.insert(0, os.getcwd() if program.module else str(Path(program.path).resolve().parent))
    if defines_function(program):
        run = runpy.run_module if program.module else runpy.run_path
        _compile(run(program.path)[program.name or "program"](), request.target)
    elif program.module:
        runpy.run_module(program.path, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program.path, run_name="__main__")


def _compile(returned: Any, target: Target) -> None:
    """Call the model that a program's function returned, compiled, with its arguments, and run its backward."""
    import torch

    model, args, *rest = (*returned, ()) if len(returned) == 1 else returned
    kwargs = next((each for each in rest if isinstance(each, dict)), {})
    loss = next((each for each in rest if callable(each)), None)
    backend = _INSTEAD.get(target.backend, target.backend)
    compiled = cast(Any, torch.compile(model, backend=backend, dynamic=target.dynamic))
    result = compiled(*args, **kwargs)
    if loss is not None:
        cast(Any, loss(result)).backward()
