"""Records of a backend's conformance: its programs, and what came of each. What is not known is None."""

from typing import Literal

import msgspec

from idbg.schema.bench import Conformed, direction_of
from idbg.schema.html_repr import html_of
from idbg.schema.programs import FALLBACK, Failure
from idbg.schema.repros import Minified

CONTROL = "aot_eager"
"""The backend with which a program is run again where torch's own code raised: what passes there is not torch's."""

HANG = "Hang"
"""The type of the failure of a program that was stopped at its limit."""

Grade = Literal["passed", "failed", "falls back", "unknown"]
"""Of one program: "falls back": the backend compiled nothing of it, and its numbers are eager's own."""


class ConformanceProgram(msgspec.Struct, frozen=True):
    """One program of the kit: a function of a file, whose family is the file's first line."""

    name: str
    family: str
    file: str
    about: str = ""
    quick: bool = False


class MinimalScript(msgspec.Struct, frozen=True, omit_defaults=True):
    """The smallest script that failed as the program does in a fresh process, and the search that `found` it. Without a
    `path` none did, and `problem` says why. `session` is the search's; `blame` says where numbers go wrong.
    """

    path: str = ""
    found: Minified | None = None
    problem: str = ""
    session: str = ""
    blame: str = ""


class ConformanceRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One program on one backend. `failure` is why there is no `result`: an exception, a crash, a hang; or the
    program could not run in eager. `control` is the grade with CONTROL, where torch raised the failure.
    """

    program: ConformanceProgram
    result: Conformed | None = None
    failure: Failure | None = None
    seconds: float = 0.0
    script: MinimalScript | None = None
    control: Grade | None = None

    @property
    def cause(self) -> Failure | None:
        """Why the compiled side gave nothing; None where it did, or where it is not the compiled side's."""
        if self.result is None:
            return None if self.failure is None or self.failure.kind in ("input", "cancelled") else self.failure
        sides = self.result.report.sides
        return sides[1].failure if len(sides) > 1 else None

    @property
    def judged(self) -> bool:
        """Whether the compiled numbers were held against eager's."""
        return self.result is not None and self.result.report.verdict in ("passed", "failed")

    @property
    def compiles(self) -> bool | None:
        """Whether something was compiled, and ran to its end."""
        if self.is_native or (self.cause is not None):
            return False
        return True if self.judged else None

    @property
    def is_native(self) -> bool:
        """Whether the backend compiled nothing of the program, and ran it natively or not at all."""
        if self.cause is not None:
            return self.cause.type == FALLBACK
        if self.result is None:
            return False
        native = self.result.native
        left_all = native is not None and bool(native.calls) and native.left == native.calls
        return left_all or self.result.report.verdict == "empty"

    @property
    def falls_back(self) -> bool | None:
        """Whether a part of it runs without the backend: a graph breaks, or calls are left to eager."""
        if self.is_native:
            return True
        if self.result is None or self.cause is not None:
            return None
        native = self.result.native
        if self.result.breaks or (native is not None and native.left):
            return True
        return None if native is None else False

    @property
    def agrees(self) -> bool | None:
        """Whether its numbers are right; None where they were not judged, or are eager's own."""
        if not self.judged or self.is_native or self.result is None:
            return None
        return self.result.report.verdict == "passed"

    @property
    def slow(self) -> bool | None:
        """Whether a call takes longer than in eager by more than chance; None where it was not measured."""
        found = self.result
        if found is None or found.eager is None or found.compiled is None or found.p is None or self.is_native:
            return None
        return direction_of(found.compiled, found.eager, self.ratio or 1.0, found.p) == "slower"

    @property
    def ratio(self) -> float | None:
        """The compiled median over eager's."""
        found = self.result
        if found is None or found.eager is None or found.compiled is None or not found.eager.median:
            return None
        return found.compiled.median / found.eager.median

    @property
    def grade(self) -> Grade:
        """The verdict of the program."""
        if self.is_native:
            return "falls back"
        if self.cause is not None or self.agrees is False:
            return "failed"
        return "passed" if self.agrees else "unknown"


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """A backend's rows, with the versions of what ran. `expected` are the programs that were to run: what is not among
    the rows was not run, and `problem` says why, where it is the backend's.
    """

    backend: str
    rows: tuple[ConformanceRow, ...] = ()
    expected: tuple[ConformanceProgram, ...] = ()
    versions: dict[str, str] = {}
    problem: Failure | None = None
    quick: bool = False
    seconds: float = 0.0
    at: float = 0.0

    def with_script(self, row: ConformanceRow, script: MinimalScript) -> "Conformance":
        """The same with the script of one of its rows."""
        rows = tuple(msgspec.structs.replace(each, script=script) if each is row else each for each in self.rows)
        return msgspec.structs.replace(self, rows=rows)

    def _repr_html_(self) -> str | None:
        return html_of(self)
