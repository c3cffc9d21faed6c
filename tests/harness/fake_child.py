"""A stand-in for `idbg.worker.main` without torch: it speaks the protocol; the program's path says how it behaves."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from idbg.schema import event_log, events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.diff import DiffReport, ErrorMap, SideResult
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.programs import Failure
from idbg.schema.repros import Minified, MinifyProgress, OtherFailure, Signature
from idbg.schema.violations import Violation
from idbg.startup.sitecustomize import passing
from idbg.worker import protocol

IGNORING = ("ignore SIGINT", "hang for good")  # SIGINT
FAILURES = {
    "fail": Failure(kind="user", type="ValueError", message="the program raised"),
    "no backend": Failure(kind="input", type="BadInput", message="there is no backend 'x'"),
    "search": Failure(kind="torch", type="LoweringException", message="no lowering of cumsum"),
    "search for good": Failure(kind="torch", type="LoweringException", message="no lowering of cumsum"),
    "search in vain": Failure(kind="torch", type="LoweringException", message="no lowering of cumsum"),
    "misuse": Failure(kind="input", type="ProgramError", message="no such function"),
}
VIOLATION = Violation(
    rule="alignment",
    severity="reject",
    node=NodeId(GraphId("0/0", "dynamo"), "mul"),
    found="dim 0 is 10",
    wanted="a multiple of 16",
)


def main() -> None:
    if os.environ.get("FAKE_START") == "no torch":
        raise ModuleNotFoundError("No module named 'torch'")
    requests, out = os.fdopen(int(sys.argv[1]), "rb"), int(sys.argv[2])

    def say(event: events.SessionEvent) -> None:
        os.write(out, event_log.encode(event) + b"\n")

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(events.WorkerStarted(pid=os.getpid(), torch="9.9", python="3", devices=("cpu",), seconds=0.0))
    for line in requests:
        request = protocol.decode(line)
        if isinstance(request, protocol.MapErrors):
            say(events.ErrorsMapped(run=request.run, map=ErrorMap(request.name, request.index, (1, 1), ((0.5,),))))
            continue
        if isinstance(request, protocol.FindOwner):
            owner = KernelAttribution(
                launch=request.launch, name="k", kind="nobody", sentence="nobody's", script=request.folder
            )
            say(events.OwnerEnded(run=request.run, owner=owner))
            continue
        if isinstance(request, protocol.EditKernel):
            if "crash" in request.text:
                os.kill(os.getpid(), signal.SIGSEGV)
            say(events.KernelEdited(run=request.run, edit=request.edit(seconds=0.5)))
            continue
        if isinstance(request, protocol.WriteRepro):
            say(events.ReproEnded(run=request.run, path=os.path.join(request.folder, "repro.py"), reproduced=True))
            continue
        how = Path(request.program.path).stem.replace("_", " ")
        if isinstance(request, protocol.Minify):
            search(how, request, say)
            continue
        failure = FAILURES.get(how)
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN if how in IGNORING else signal.default_int_handler)
            say(events.PhaseChanged(run=request.run, phase="behaving"))
            record(how, request.run, say)
            if how.startswith("become") and isinstance(request, protocol.Compile):
                become(how, request, out)
            behave(how, out, lambda run=request.run: say(events.PhaseChanged(run=run, phase="between")))
        except KeyboardInterrupt:
            failure = Failure(kind="cancelled", message="cancelled")
            if how == "clean up":
                say(events.PhaseChanged(run=request.run, phase="behaving", seconds=1.0))
                time.sleep(0.05)  # the host is busy with that event, and then finds the next two together
                os.write(2, b"cleaning up\n")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
        if how == "violate":
            say(events.ViolationsFound(run=request.run, violations=(VIOLATION,)))
        verdict = "violations" if how == "violate" else "failed" if failure else "clean"
        say(events.RunEnded(run=request.run, verdict=verdict, seconds=0.0, failure=failure))  # type: ignore[arg-type]
        if how == "end and leave":
            os.closerange(3, 100)
            time.sleep(1)
            os._exit(0)


def record(how: str, run: int, say: Callable[[events.SessionEvent], None]) -> None:
    """What a run has recorded before it behaves so."""
    if how == "differ":
        say(
            events.Compared(
                run=run, report=DiffReport(test="inductor", reference="eager", verdict="failed", mode="float64")
            )
        )
    if how == "print":
        say(events.GraphCaptured(run=run, graph=Graph(VIOLATION.node.graph, ())))
    if how.startswith("hang"):
        say(events.SideStarted(run=run, side="eager"))
        say(events.SideEnded(run=run, side=SideResult("eager", 0.5)))
        say(events.SideStarted(run=run, side="inductor"))


def search(how: str, request: protocol.Minify, say: Callable[[events.SessionEvent], None]) -> None:
    """A search of two tries; "search" goes on until it is stopped, "search for good" even then."""
    kind = {"violation": "violation", "wrong": "wrong", "check": "check"}.get(request.sought.kind, "compile")
    signature = Signature(kind, "inductor", "LoweringException", "no lowering")  # type: ignore[arg-type]
    path = os.path.join(request.folder, "min", "repro.py")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text("print('REPRODUCED')  # ```\n")
    for calls, size in ((1, 9), (2, 3)):
        progress = MinifyProgress("prefix", size=size, whole=9, calls=calls, budget=request.budget.calls, best=path)
        say(events.MinifyProgressed(run=request.run, progress=progress))
    if how == "search in vain":
        refused = Failure(kind="idbg", message="it was not seen to fail again", hint="try once more")
        say(events.MinifyEnded(run=request.run, failure=refused))
        return
    found = Minified(
        signature, path, True, 1, "REPRODUCED", 3, 9, lines=28, minimal=True, calls=2, seconds=0.5,
        guarantee="1-minimal: no node can be left out", others=(OtherFailure("RuntimeError: x", 2),),
    )  # fmt: skip
    if how.startswith("search"):
        signal.signal(signal.SIGINT, signal.SIG_IGN if how == "search for good" else signal.default_int_handler)
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            found = replace(found, minimal=False, guarantee="stopped before it was known to be minimal")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(events.MinifyEnded(run=request.run, minified=found))


def become(how: str, request: protocol.Compile, out: int) -> None:
    """Another program takes this one's place: one that compiles in a process of the session, or one that crashes."""
    replaced = events.RunEnded(run=request.run, verdict="empty", seconds=1.0, took_process=True, replaced=True)
    os.write(out, event_log.encode(replaced) + b"\n")
    os.set_inheritable(out, False)
    note = passing.pid_file(request.session, os.getpid())
    compiles = f"sleep 1; mkdir -p {os.path.dirname(note)}; echo child-1 > {note}; echo after; exit 3"
    os.execv("/bin/sh", ["sh", "-c", "kill -SEGV $$" if "crash" in how else compiles])


def behave(how: str, out: int, between: Callable[[], None]) -> None:
    match how:
        case "print":
            print("hello from stdout")
            print("hello from stderr", file=sys.stderr)
        case "print megabytes":
            for _ in range(40):
                print("x" * 99_999)
        case "print in bits":
            os.write(1, "é".encode()[:1])
            time.sleep(0.3)
            os.write(1, "é".encode()[1:] + b"\xff\n")
        case "chatter":
            time.sleep(0.3)  # for the host to read the event before
            for _ in range(2):
                for number in range(300):
                    print(number, flush=True)
                    time.sleep(0.003)
                time.sleep(0.3)
                between()
        case "sleep" | "clean up" | "hang" | "ignore SIGINT" | "hang for good":
            time.sleep(60)
        case "hold the GIL":
            ctypes.PyDLL(None).sleep(60)
        case "segfault":
            print("last words", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "terminate":  # as C++ does for an uncaught exception
            print("  what():  index out of bounds", file=sys.stderr, flush=True)
            os.abort()
        case "exit":
            os._exit(3)
        case "garbage":
            os.write(out, b"not an event\n")
        case "close everything":
            os.closerange(3, 100)
            time.sleep(60)
        case "exit slowly":
            os.closerange(3, 100)
            time.sleep(1.5)
            os._exit(3)
        case "orphan":
            print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
            time.sleep(60)
        case "orphan and die":
            print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
            os._exit(4)


main()
