"""A stand-in for `idbg.worker.main` without torch: it speaks the protocol; the program's path says how it behaves."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from idbg.schema import event_log, events
from idbg.schema.diff import ErrorMap, SideResult
from idbg.schema.graphs import Graph, GraphId, NodeId
from idbg.schema.owner import OwnerVerdict
from idbg.schema.programs import Failure
from idbg.schema.violations import Violation
from idbg.worker import protocol

FAILURES = {
    "fail": Failure(kind="user", type="ValueError", message="the program raised"),
    "no backend": Failure(kind="input", type="BadInput", message="there is no backend 'x'"),
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
            owner = OwnerVerdict(
                launch=request.launch, name="k", kind="nobody", sentence="nobody's", script=request.folder
            )
            say(events.OwnerEnded(run=request.run, owner=owner))
            continue
        if isinstance(request, protocol.WriteRepro):
            say(events.ReproEnded(run=request.run, path=os.path.join(request.folder, "repro.py"), reproduced=True))
            continue
        how = Path(request.program.path).stem.replace("_", " ")
        failure = FAILURES.get(how)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            say(events.PhaseChanged(run=request.run, phase="behaving"))
            if how == "print":
                say(events.GraphCaptured(run=request.run, graph=Graph(VIOLATION.node.graph, ())))
            if how.startswith("hang"):
                say(events.SideStarted(run=request.run, side="eager"))
                say(events.SideEnded(run=request.run, side=SideResult("eager", 0.5)))
                say(events.SideStarted(run=request.run, side="inductor"))
            behave(how, out)
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


def behave(how: str, out: int) -> None:
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
            for number in range(300):
                print(number, flush=True)
                time.sleep(0.003)
        case "sleep" | "clean up" | "hang":
            time.sleep(60)
        case "hold the GIL":
            ctypes.PyDLL(None).sleep(60)
        case "ignore SIGINT" | "hang for good":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            time.sleep(60)
        case "segfault":
            print("last words", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
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
