"""Tests of a backend for pytest: one for each program of the conformance kit. Imports no torch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from idbg.conformance import catalogue
from idbg.conformance.runner import SECONDS, ConformanceRunner
from idbg.schema.conformance import Conformance, ConformanceProgram, ConformanceRow
from idbg.schema.errors import BadInput
from idbg.schema.programs import OptionValue
from idbg.views import conformance as view

RowOf = Callable[[str, Mapping[str, OptionValue], float, ConformanceProgram], ConformanceRow]
"""Runs a program with a backend, its options and a limit in seconds."""


def conformance(
    backend: str,
    *,
    quick: bool = False,
    programs: Sequence[str] = (),
    options: Mapping[str, OptionValue] | None = None,
    known: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> Callable[..., None]:
    """A test of each program with the backend: assign it to a name that begins with `test`.

    A program fails as in `idbg conform`; one that the backend leaves to eager, or that cannot be judged, is skipped.
    `programs` are FAMILY or FAMILY:PROGRAM, by default all, or with `quick` a third. `known` maps FAMILY:PROGRAM to why
    it fails: such a test is expected to fail, and one that passes is reported as XPASS. `seconds` limits each program.
    Raises BadInput for a program that there is not.
    """
    every = catalogue.programs()
    wanted = catalogue.chosen(every if programs else catalogue.programs(quick=quick), programs)
    reasons = dict(known or {})
    if unknown := reasons.keys() - set(map(view.name_of, every)):
        raise BadInput(f"there is no program {min(unknown)!r}", hint="known has FAMILY:PROGRAM: idbg conform --list")

    def parameter(program: ConformanceProgram) -> object:
        why = reasons.get(view.name_of(program))
        marks = [] if why is None else [pytest.mark.xfail(reason=why, strict=False)]
        return pytest.param(program, id=view.name_of(program), marks=marks)

    @pytest.mark.parametrize("program", [parameter(program) for program in wanted])
    def test(program: ConformanceProgram, idbg_conformance: RowOf) -> None:
        __tracebackhide__ = True
        row = idbg_conformance(backend, options or {}, seconds, program)
        if row.failure is not None and row.failure.kind == "input":
            pytest.fail(f"{row.failure.message}: {row.failure.hint}", pytrace=False)
        reason = view.reason(row)
        if row.grade == "failed":
            owner = view.owner(row, Conformance(backend=backend))
            pytest.fail(f"{reason}\nowner: {owner}\nagain: {view.again(row, backend)}", pytrace=False)
        if row.grade != "passed":
            pytest.skip(reason)

    return test


@contextmanager
def runners(folder: Path) -> Iterator[RowOf]:
    """A function that runs programs, in processes that live until the end of the block, and from copies in `folder`."""
    place = catalogue.copied(folder)
    started: dict[object, ConformanceRunner] = {}
    with ExitStack() as stack:

        def row(
            backend: str, options: Mapping[str, OptionValue], seconds: float, program: ConformanceProgram
        ) -> ConformanceRow:
            key = (backend, repr(sorted(options.items())), seconds)
            if key not in started:
                started[key] = stack.enter_context(
                    ConformanceRunner(backend, dict(options), seconds=seconds, samples=0)
                )
            return started[key].row(replace(program, file=str(place / Path(program.file).name)))

        yield row
