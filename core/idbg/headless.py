"""What comes of a program, for Python code that wants the result and no screen?"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from idbg.program_args import check_device, parse_program
from idbg.records import Target
from idbg.run import Run
from idbg.session import Session


def run_program(
    program: str,
    *,
    backend: str = "aot",
    accelerator: str = "mock",
    strict: bool = False,
    device: str = "",
    dynamic: bool | None = None,
    options: Mapping[str, bool | int | float | str] | None = None,
    module: bool = False,
    argv: Sequence[str] = (),
    output: str | Path = "debug_artifacts",
) -> Run:
    """Compile and run `program` ("FILE.py", "FILE.py:NAME", or with `module` a module's name) once, in a worker.

    The session is kept under `output`. A compile that failed is a run whose `failure` says why. Raises BadInput
    (ProgramError, AcceleratorError, OutputError) where there is nothing to run.
    """
    found = parse_program(program, module=module, argv=tuple(argv), cwd=os.getcwd())
    check_device(device)
    target = Target(
        backend=backend,
        device=device,
        strict=strict,
        dynamic=dynamic,
        accelerator=accelerator,
        options=dict(options or {}),
    )
    with Session(found, target, output=Path(output)) as session:
        number = session.run()
        session.wait()
        return session.history.runs[number]
