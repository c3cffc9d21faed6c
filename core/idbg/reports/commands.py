"""Write the shell command that repeats a run, or that finds out more about it."""

import shlex
from collections.abc import Iterator

from idbg.schema import strict_json
from idbg.schema.diff import EAGER, Comparison
from idbg.schema.programs import OptionValue, Program, Target
from idbg.schema.runs import Run

_COMPARED = Comparison()


def command(run: Run) -> str:
    """A line for a shell in the folder where the program was started: `idbg run FILE ...`, or `idbg diff` of a run that
    was compared, or the `pytest` of a test.
    """
    if run.program.is_test:
        rules = ("--idbg-accelerator", run.target.accelerator) if run.checked_rules else ()
        return shlex.join(["pytest", run.program.label, "--idbg", *rules])
    verb = "run" if run.comparison is None else "diff"
    words = ["idbg", verb, *_program(run.program), *_target(run.target)]
    if run.comparison is not None:
        words += [*_comparison(run.comparison), *(("--float64", "cpu") if run.target.float64 == "cpu" else ())]
    return shlex.join([*words, *(("--", *run.program.argv) if run.program.argv else ())])


def ask(verb: str, run: Run | None, *flags: str) -> str:
    """`idbg VERB` of the run's program with these flags; with FILE.py in its place where there is no run."""
    named = _program(run.program) if run else ["FILE.py"]
    argv = ("--", *run.program.argv) if run and run.program.argv else ()
    return shlex.join(["idbg", verb, *named, *flags, *argv])


def _program(program: Program) -> list[str]:
    if program.is_trace:
        return ["FILE.py"]
    name = program.path + (f":{program.name}" if program.name else "")
    return ["-m", name] if program.module else [name]


def _target(target: Target) -> Iterator[str]:
    yield from () if target.own_backend else ("--backend", target.backend)
    yield from ("--accelerator", target.accelerator)
    if target.device:
        yield from ("--device", target.device)
    yield "--strict" if target.strict else "--warn"
    if target.dynamic is not None:
        yield "--dynamic" if target.dynamic else "--no-dynamic"
    for name, value in target.options.items():
        yield from ("--option", f"{name}={_value(value)}")
    if target.mode:
        yield from ("--mode", target.mode)
    if target.stance:
        yield from ("--stance", target.stance)
    for name, value in target.settings.items():
        yield from ("--setting", f"{name}={_value(value)}")
    for source in target.dynamic_sources:
        yield from ("--dynamic-source", source)
    if target.cold:
        yield "--cold"


def _comparison(comparison: Comparison) -> Iterator[str]:
    if comparison.reference != EAGER:
        yield from ("--against", comparison.reference)
    for flag in ("per_kernel", "backward", "sync", "nan"):
        if getattr(comparison, flag):
            yield f"--{flag.replace('_', '-')}"
    options = {"--runs": "runs", "--atol": "atol", "--rtol": "rtol", "--factor": "k", "--timeout": "seconds"}
    for option, name in (options | {"--steps": "steps"}).items():
        value = getattr(comparison, name)
        if value is not None and value != getattr(_COMPARED, name):
            yield from (option, str(value))


def _value(value: OptionValue) -> str:
    """As `idbg.config.options.parse` reads it: a text that would be read as another type is quoted."""
    if isinstance(value, str) and value[:1].isalpha() and value.lower() not in _OTHERS:
        return value
    return repr(value) if isinstance(value, float) else strict_json.encode(value).decode()


_OTHERS = ("true", "false", "none", "null", "inf", "nan", "infinity")
