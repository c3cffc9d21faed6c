"""Import a trace in a process of its own, for a screen that shows it meanwhile.

The first line on stdout is JSON: the session's folder, or why nothing can be imported. A trace that is still written is
followed until its writers end; the end of stdin ends that too.
"""

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

from idbg.schema.errors import BadInput, IdbgError
from idbg.session.importing import Import, is_written

MODULE = "idbg.session.import_process"


class Answer(msgspec.Struct, omit_defaults=True):
    """The first line."""

    folder: str = ""
    message: str = ""
    hint: str = ""


class ImportProcess(NamedTuple):
    """A started import: its session's folder, and the process that writes it."""

    folder: Path
    process: "subprocess.Popen[bytes]"

    def end(self) -> None:
        """Stop it. What was read so far stays in the session."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()


def start(source: Path, output: Path, accelerator: str = "") -> ImportProcess:
    """Begin to import. Raises BadInput where nothing can be imported."""
    command = [sys.executable, "-P", "-m", MODULE, str(source), str(output), accelerator]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        answer = msgspec.json.decode(line, type=Answer)
    except ValueError:
        answer = Answer(message=f"the process that reads {source} ended", hint="idbg import shows its error")
    begun = ImportProcess(Path(answer.folder), process)
    if not answer.folder:
        begun.end()
        raise BadInput(answer.message, hint=answer.hint)
    return begun


def main(argv: list[str]) -> int:
    """Import the trace that the arguments name."""
    source, output, accelerator = Path(argv[0]), Path(argv[1]), argv[2]
    try:
        importing = Import(source, output, accelerator=accelerator)
    except IdbgError as error:
        _answer(Answer(message=error.message, hint=error.hint))
        return 2
    _answer(Answer(folder=str(importing.folder)))
    os.nice(5)  # the screen comes first
    try:
        if is_written(source):
            importing.follow(lambda: _is_left() or not is_written(source))
        else:
            importing.read()
    except IdbgError:  # a full disk: the session has what came before
        return 1
    return 0


def _answer(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def _is_left() -> bool:
    """Whether the screen has closed our stdin."""
    ready, _, _ = select.select([0], [], [], 0)
    return bool(ready) and not os.read(0, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
