"""Compile, check and report a program from Python code, without a screen."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from idbg.checking import check as checks
from idbg.checking.check import Check
from idbg.config.arguments import accelerator_of, check_device, parse_program
from idbg.config.options import family
from idbg.reports import notebook
from idbg.reports.documents import SessionData, document, format_of, formats, write
from idbg.schema import html_repr
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue, Program, Target
from idbg.schema.runs import Run, fold
from idbg.session import processes, ranks
from idbg.session.session import Session as Session


def _drawn(session: Session) -> str:
    history = fold(session.events)  # its own: the session's changes while events arrive
    return notebook.of_history(history, session.folder.name, str(session.folder))


notebook.register()  # Python code that imports this has runs, comparisons and rows: they draw themselves in a notebook
html_repr.register(Session, _drawn)


def run_program(
    program: str,
    *,
    backend: str = "aot",
    accelerator: str = "",
    strict: bool = False,
    device: str = "",
    dynamic: bool | None = None,
    options: Mapping[str, OptionValue] | None = None,
    module: bool = False,
    argv: Sequence[str] = (),
    output: str | Path = "debug_artifacts",
) -> Run:
    """Compile and run `program` ("FILE.py", "FILE.py:NAME", or with `module` a module's name) once, in a worker.

    Without an `accelerator` the rules are those that the program's IDBG_ACCELERATOR names, or the backend's own; else
    there are none. The session is kept under `output`. A compile that failed is a run whose `failure` says why. Raises
    BadInput (ProgramError, AcceleratorError, OutputError) where there is nothing to run.
    """
    parsed = parse_program(program, module=module, argv=tuple(argv), cwd=os.getcwd())
    check_device(device)
    target = Target(
        backend=backend,
        device=device,
        strict=strict,
        dynamic=dynamic,
        accelerator=accelerator or accelerator_of(parsed, backend),
        options=dict(options or {}),
        options_for=family(backend),
    )
    return _ran(parsed, target, Path(output))


def check(
    program: str,
    *,
    accelerators: Sequence[str] = (),
    stage: str = "aten",
    device: str = "",
    dynamic: bool | None = None,
    module: bool = False,
    argv: Sequence[str] = (),
    output: str | Path = "debug_artifacts",
) -> Check:
    """Run `program` once, and hold its graphs against each of the accelerators (presets or files; none: all presets).

    `stage` is "aten" (forward, backward and inference graphs), "dynamo" or "post_grad". `failure` of what is returned
    says why graphs are missing. Raises BadInput as `run_program` does.
    """
    if stage not in checks.LEVELS:
        raise BadInput(f"there is no stage {stage!r} to check", hint=f"use one of {', '.join(checks.LEVELS)}")
    parsed = parse_program(program, module=module, argv=tuple(argv), cwd=os.getcwd())
    check_device(device)
    named = checks.named(accelerators) if accelerators else checks.presets()[0]
    run = _ran(parsed, checks.target(stage, device=device, dynamic=dynamic), Path(output))
    return checks.check(run, stage, named, best_first=not accelerators)


def report(session: Session | str | Path, to: str | Path = "", *, format: str = "", other: str | Path = "") -> bytes:
    """A session, live or the folder of a saved one, as one file's content, which is also written to `to` if that is
    given; its folder is made. FOLDER/NAME is one of its processes.

    `format` is one of `idbg.reports.documents.formats()` ("html", "json", ...); "" is what the name of `to` ends with,
    or html. `other` is the folder of a session to compare it with. Raises OutputError, or BadInput for an unknown
    format.
    """
    name = format or (format_of(Path(to)) if to else "html")
    if name not in formats():
        raise BadInput(f"there is no report {name!r}", hint=f"use one of {', '.join(formats())}")
    data = replace(_data(session), other=_data(other) if other else None)
    content = document(name).render(data)
    if to:
        write(Path(to), content)
    return content


def _data(session: Session | str | Path) -> SessionData:
    if isinstance(session, Session):
        return SessionData(session.folder.name, session.history, str(session.folder))
    folder = Path(session)
    with Session.open(processes.find(folder.parent, folder.name) or folder) as saved:
        ranks.add(saved.history, saved.folder)
        return SessionData(saved.folder.name, saved.history, str(saved.folder))


def _ran(program: Program, target: Target, output: Path) -> Run:
    with Session(program, target, output=output) as session:
        number = session.run()
        session.wait()
        return session.history.runs[number]
