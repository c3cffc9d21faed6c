"""The requests that the host sends to the worker.

Requests go down one pipe and session events come up another, both as lines of JSON. The child finds the two
descriptors on its command line: `COMMAND REQUEST_FD EVENT_FD` (`child`). stdin is /dev/null; stdout and
stderr are pipes that the host reads. The child reports `WorkerStarted` first, and ends every request with one
event of `Ended`. SIGINT to the child's process group cancels
the current request (it ends with a failure of kind "cancelled"); end of file on the request pipe ends the child.
"""

import msgspec

from idbg.schema import events
from idbg.schema.code import Kernel
from idbg.schema.diff import Comparison
from idbg.schema.graphs import NodeId
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.repros import Budget, Sought


class Compile(msgspec.Struct, frozen=True, tag_field="type", tag="compile"):
    """Run the program for the target, and hold it against a reference if there is a `comparison`.

    `folder` exists and is the session's for repros: strict mode writes one there. `session` is the session's own; ""
    where that cannot be written.
    """

    run: int
    program: Program
    target: Target
    folder: str
    comparison: Comparison | None = None
    session: str = ""


class WriteRepro(msgspec.Struct, frozen=True, tag_field="type", tag="write_repro"):
    """Write a repro of a violation of a run (with no node: of its failed compile) into `folder`; try it once.

    `rules` are those in force now, where they are not the run's.
    """

    run: int
    folder: str
    node: NodeId | None = None
    rule: str = ""
    rules: str = ""


class Minify(msgspec.Struct, frozen=True, tag_field="type", tag="minify"):
    """Find the smallest script that shows what is `sought` of a run of the program for the target, and write it into
    `folder`. Where the worker holds that run no more, or it killed the worker, the program is captured again.

    `failure` is the run's. `keep_data` false: no value of the program's goes into a script, but shapes and statistics.
    """

    run: int
    program: Program
    target: Target
    folder: str
    sought: Sought
    failure: Failure | None = None
    comparison: Comparison | None = None
    budget: Budget = Budget()
    keep_data: bool = True


class MapErrors(msgspec.Struct, frozen=True, tag_field="type", tag="map_errors"):
    """Map the error of one slice of an output or gradient of the run that was compared last."""

    run: int
    name: str
    index: tuple[int, ...] = ()


class FindOwner(msgspec.Struct, frozen=True, tag_field="type", tag="find_owner"):
    """Find whose the error of a launch of the run that was compared last is: `launch` indexes the report's `kernels`.

    A script that shows it is written into `folder`, and tried once.
    """

    run: int
    launch: int
    folder: str


class LowerKernel(msgspec.Struct, frozen=True, tag_field="type", tag="lower_kernel"):
    """Tell what a kernel of the last run was lowered to."""

    run: int
    kernel: Kernel


class EditKernel(msgspec.Struct, frozen=True, tag_field="type", tag="edit_kernel"):
    """Run the program as a run of it was compiled, with `text` as the source of one of its kernels; compare and time
    that. `version` is the number of this text.
    """

    run: int
    program: Program
    target: Target
    kernel: Kernel
    text: str
    version: int
    comparison: Comparison | None = None

    def edit(self, failure: Failure | None = None, seconds: float = 0.0) -> KernelEdit:
        """The record of this version, before anything is known of it but why it failed."""
        kernel = self.kernel
        return KernelEdit(
            frame=kernel.frame,
            part=kernel.part,
            name=kernel.name,
            language=kernel.source_language,
            version=self.version,
            text=self.text,
            seconds=seconds,
            failure=failure,
        )


Request = Compile | WriteRepro | Minify | MapErrors | FindOwner | LowerKernel | EditKernel
Ended = (
    events.RunEnded
    | events.ReproEnded
    | events.MinifyEnded
    | events.ErrorsMapped
    | events.OwnerEnded
    | events.KernelLowered
    | events.KernelEdited
)


def failed(request: Request, failure: Failure, seconds: float = 0.0) -> Ended:
    """The event that ends a request which failed."""
    run = request.run
    match request:
        case Compile():
            return events.RunEnded(run=run, verdict="failed", seconds=seconds, failure=failure)
        case WriteRepro():
            return events.ReproEnded(run=run, path="", seconds=seconds, failure=failure)
        case Minify():
            return events.MinifyEnded(run=run, failure=failure)
        case MapErrors():
            return events.ErrorsMapped(run=run, failure=failure)
        case FindOwner():
            return events.OwnerEnded(run=run, failure=failure)
        case LowerKernel(kernel=kernel):
            return events.KernelLowered(
                run=run, frame=kernel.frame, part=kernel.part, name=kernel.name, failure=failure
            )
        case EditKernel():
            return events.KernelEdited(run=run, edit=request.edit(failure, seconds))


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


def encode(request: Request) -> bytes:
    """The request as one line of JSON, without its end."""
    return _encoder.encode(request)


def decode(line: bytes) -> Request:
    """The request again. Raises msgspec.DecodeError."""
    return _decoder.decode(line)
