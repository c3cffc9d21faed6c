"""Find the smallest script that fails as the user's program does: fewer modules, then fewer statements."""

import builtins
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from idbg.engine.compat import dynamo, registrations
from idbg.engine.minify.result import kept_others
from idbg.engine.minify.running import RATE_TRIES, TryRunner, rate, tries_needed
from idbg.engine.minify.user_level import module_calls, modules
from idbg.engine.minify.user_level.callbacks import called_back
from idbg.engine.minify.user_level.failure_pattern import FailurePattern
from idbg.engine.minify.user_level.script import (
    CompileArguments,
    ProgramCandidate,
    around,
    as_compiled,
    ways,
    without_main,
)
from idbg.engine.minify.user_level.script_runs import SCRIPT, ScriptRuns, Workspace
from idbg.engine.program.load import defines_function, file_of
from idbg.engine.repro.definitions import own_lowerings
from idbg.reduce.sources import parsed
from idbg.reduce.statements import reduce_source
from idbg.reduce.tries import Stopped, Tries
from idbg.schema.errors import ProgramError, exception_text
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Budget, Minified, MinifyProgress, OtherFailure, Signature

_PLAIN = {"aot": "inductor", "inductor": "inductor"}  # idbg's own, as torch names them
_BUILTIN = "|".join(name for name in dir(builtins) if name.endswith(("Error", "Iteration")) and name != "RuntimeError")
_LACKS = re.compile(
    rf"({_BUILTIN}|InductorError: NameError|TorchRuntimeError|Unsupported: Observed exception|exit status )\b"
)
_UNKNOWN = 1 << 20  # no exit status
Tell = Callable[[MinifyProgress], None]


def reduced_program(
    program: Program,
    target: Target,
    wanted: FailurePattern,
    place: Workspace,
    budget: Budget,
    tell: Tell = lambda progress: None,
) -> Minified:
    """The smallest script found that fails as the program does; it has been run in a fresh process.

    With the kind "none", the program does not fail so when it is run by itself. Stopping (KeyboardInterrupt, or the
    budget) keeps the smallest so far. Raises ProgramError where there is no source to make smaller, OutputError.
    """
    return _search(program, target, wanted, place, budget, tell).run()


def whole_program(program: Program, target: Target, wanted: FailurePattern, place: Workspace) -> Path:
    """Write the program as it is, with what tells that it fails so, and return the script's path.

    Raises ProgramError where there is no source, OutputError.
    """
    return _search(program, target, wanted, place, Budget()).written_whole()


def _search(
    program: Program,
    target: Target,
    wanted: FailurePattern,
    place: Workspace,
    budget: Budget,
    tell: Tell = lambda progress: None,
) -> "_Search":
    """The search in the program's file. Raises ProgramError."""
    file = file_of(program)
    if file is None or not file.is_file():
        raise ProgramError(f"{program.label} has no Python source to make smaller", hint="give its .py file")
    try:
        parsed(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ProgramError(
            f"{file.name} is no Python, so nothing of it can be left out: {exception_text(error)}",
            hint="fix that first",
        ) from error
    if wanted.command:
        return _OfACommand(program, target, wanted, place, budget, tell, file)
    kind = _OfAModel if defines_function(program) else _Search
    return kind(program, target, wanted, place, budget, tell, file)


@dataclass
class _Search:
    """A search in a script, which compiles something by itself."""

    program: Program
    target: Target
    wanted: FailurePattern
    place: Workspace
    budget: Budget
    tell: Tell
    file: Path
    doing: str = field(default="the whole program", init=False)
    failed: int = field(default=1, init=False)  # of so many times that the whole was
    tried: int = field(default=1, init=False)
    whole: int = field(default=0, init=False)  # lines that the search began with

    def __post_init__(self) -> None:
        self.text = self.file.read_text(encoding="utf-8").replace("\r\n", "\n")
        running = TryRunner.within(self.budget, self.place.forks)
        self.trying = ScriptRuns(self.program, self.file, self.wanted, self.place, running)
        self.tries: Tries[ProgramCandidate] = Tries(
            self.trying, lambda one: one.key, self.budget, path=self.place.known, told=lambda judged: self.report()
        )

    def run(self) -> Minified:
        """What it comes to, also where it is stopped."""
        minimal, stopped = False, ""
        try:
            minimal = self._search()
        except Stopped as reason:
            stopped = str(reason)
        except KeyboardInterrupt:
            stopped = "you stopped it"
        return self._ended(minimal, stopped)

    def written_whole(self) -> Path:
        """The script with all of the program's text, compiled as the target says."""
        beginnings = [*self.beginnings()]
        asked = [one for one in beginnings if self.is_asked(one.how)] or beginnings
        self.trying.better(asked[-1])
        assert self.trying.folder is not None
        return self.trying.folder / SCRIPT

    def _search(self) -> bool:
        """Whether no single statement can be left out of what is left."""
        begun, plainest = None, None
        for one in self.beginnings():
            plainest = plainest or one
            self.whole = self.whole or _lines(one.body)
            self.tries.begin(one)
            if self.improves(one):
                begun = one
                break
        begun = begun or (plainest and self._sometimes(plainest))
        if begun is None:
            return False
        begun = self.nearer(begun)
        self.doing = "statements of the file"
        found = self._reduced(begun)
        if (
            self.wanted.line and self.wanted.pieces
        ):  # what it says is enough to tell it by, now that little else is there
            self.doing = "the line that fails"
            found = self._reduced(replace(found, anywhere=True))
        self.doing = "a plainer script"
        for one in self.plainer(found):
            self.improves(one)
        return True

    def _reduced(self, begun: ProgramCandidate) -> ProgramCandidate:
        """The candidate with as few statements, and parts of them, as still fail. Raises Stopped."""
        reduced = reduce_source(
            begun.body,
            lambda body: self.fails(self.with_body(begun, body)),
            lambda body: self.trying.better(self.with_body(begun, body)),
            self._kept(begun),
            whole=called_back(
                begun.body,
                {name.rpartition(".")[2] for name, _ in registrations.patched()},
                {function.__qualname__.partition(".")[0] for _, function in own_lowerings()},
            ),
        )
        if not reduced.minimal:
            raise Stopped(reduced.why)
        return self.with_body(begun, reduced.text)

    def _sometimes(self, whole: ProgramCandidate) -> ProgramCandidate | None:
        """The whole again, where the failure may not come every time; None where it never does."""
        self.doing = "the whole again, as it did not fail"
        self.report()
        failed, tried = rate(lambda: self.trying(whole).outcome == "same", RATE_TRIES)
        self.failed, self.tried = failed, tried + 1
        if not failed:
            return None
        self.trying.running.times = tries_needed(failed, tried + 1)
        self.trying.better(whole)
        return whole

    def _kept(self, begun: ProgramCandidate) -> list[str]:
        """Pieces of the text that a script must have to be about the same."""
        given = [f"{name}={value}" for name, value in begun.how.given]
        line = "" if begun.anywhere else self.wanted.line
        return [piece for piece in (line, *given) if piece and piece in begun.body]

    # What is tried

    def beginnings(self) -> Iterable[ProgramCandidate]:
        """The whole, in the plainest way first."""
        for how in self.hows():
            yield self.with_body(ProgramCandidate(self.text, how), as_compiled(self.text, how))

    def is_asked(self, how: CompileArguments) -> bool:
        """Whether that is how the program, or the target, has it compiled."""
        return not how.given

    @property
    def plain_backend(self) -> str:
        """The target's, as torch names it."""
        return _PLAIN.get(self.target.backend) or self.target.backend

    def hows(self) -> list[CompileArguments]:
        """The ways to compile it, the plainest first."""
        plain = self.plain_backend
        known = [plain] if plain in dynamo.backend_names() and plain != "eager" else []
        return ways(self.wanted, self.target, ["eager", *known])

    def nearer(self, begun: ProgramCandidate) -> ProgramCandidate:
        """What fails of the whole, before its statements are looked at."""
        return begun

    def with_body(self, candidate: ProgramCandidate, body: str) -> ProgramCandidate:
        """The candidate with another text, and what that needs of its place."""
        return replace(candidate, body=body, around=around(self.program, self.file, body))

    def plainer(self, candidate: ProgramCandidate) -> Iterable[ProgramCandidate]:
        """The same as an expert would write it, should it fail so."""
        if candidate.how.listens:
            whole = [("fullgraph", "True")] if self.wanted.signature.kind == "break" else []
            how = CompileArguments(False, (*candidate.how.given, *whole))
            yield replace(candidate, how=how, body=as_compiled(candidate.body, how))

    def fails(self, candidate: ProgramCandidate) -> bool:
        """Whether it fails as is looked for."""
        return self.tries(candidate).outcome == "same"

    def improves(self, candidate: ProgramCandidate) -> bool:
        """The same; and if so it is kept."""
        if not self.fails(candidate):
            return False
        self.trying.better(candidate)
        return True

    # What is told

    @property
    def others(self) -> tuple[OtherFailure, ...]:
        """The other failures, but for those of programs that lack what they need, traced or not."""
        return tuple(other for other in self.tries.others if not _LACKS.match(other.signature))

    def report(self) -> None:
        """Emit the progress."""
        best = self.trying.best
        self.tell(
            MinifyProgress(
                self.doing,
                _lines(best.body) if best else self.whole,
                self.whole,
                "lines",
                calls=self.tries.calls,
                known=self.tries.known,
                budget=self.budget.calls,
                seconds=self.tries.seconds,
                others=sum(other.count for other in self.others),
                best=str(self.trying.folder / SCRIPT) if self.trying.folder else "",
            )
        )

    def _ended(self, minimal: bool, stopped: str) -> Minified:
        best, folder = self.trying.best, self.trying.folder
        told = Minified(
            self.wanted.signature if best or stopped else Signature("none"),
            size=_lines(best.body) if best else 0,
            whole=self.whole,
            unit="lines",
            minimal=minimal,
            guarantee=_guarantee(minimal, stopped),
            calls=self.tries.calls,
            known=self.tries.known,
            failed=self.failed if best else 0,
            tried=self.tried,
            others=tuple(msgspec.structs.replace(other, path="") for other in self.others),
        )
        if best is None or folder is None:
            return msgspec.structs.replace(told, note="" if stopped else self._why_none(), seconds=self.tries.seconds)
        self.doing = "a fresh process"
        self.report()
        script = folder / SCRIPT
        told = msgspec.structs.replace(told, path=str(script), others=kept_others(self.others, folder))
        told = self.trying.placed(told)
        return msgspec.structs.replace(
            told,
            lines=len(script.read_text(encoding="utf-8").splitlines()),
            bytes=sum(file.stat().st_size for file in self.trying.files),
            seconds=self.tries.seconds,
            note=self.trying.note,
        )

    def _why_none(self) -> str:
        met = next((other.signature for other in self.tries.others), "")  # all of them
        return (
            f"run by itself, the program fails otherwise: {met}" if met else "run by itself, the program does not fail"
        )


class _OfAModel(_Search):
    """A search in a file whose function gives a model."""

    recorded = module_calls.RecordedModel((), "")

    def is_asked(self, how: CompileArguments) -> bool:
        return ("backend", f'"{self.plain_backend}"') in how.given

    def beginnings(self) -> Iterable[ProgramCandidate]:
        self._record()
        for how in self.hows():
            call = modules.whole(self.recorded, self._function, how, self.target)
            yield self.with_body(ProgramCandidate("", how), self._with_call(call, how))

    def nearer(self, begun: ProgramCandidate) -> ProgramCandidate:
        self.doing = "modules"
        how = begun.how

        def body(call: str) -> ProgramCandidate:
            return self.with_body(begun, self._with_call(call, how))

        found = modules.smallest(
            self.recorded,
            lambda call, made, stored: modules.alone(
                self.recorded, call, self._function, how, made=made, stored=stored and self.place.keep_data
            ),
            lambda call: self.fails(body(call)),
            self.wanted.source,
        )
        if found is None:
            return begun
        module, call = found
        self.trying.note = f"It is the model's {module.path} ({module.name}) alone."
        self.trying.better(body(call))
        return body(call)

    def _with_call(self, call: str, how: CompileArguments) -> str:
        return as_compiled(without_main(self.text), how).rstrip("\n") + "\n\n\n" + call

    @property
    def _function(self) -> str:
        return self.program.name or "program"

    def _record(self) -> None:
        """Run the model once as it is, to learn of its modules."""
        self.doing = "the modules of the model"
        self.report()
        scratch = self.place.scratch
        scratch.mkdir(parents=True, exist_ok=True)
        script = scratch / "record.py"
        script.write_text(module_calls.SCRIPT, encoding="utf-8")
        program = msgspec.json.encode(self.program).decode()
        tried = self.trying.running.once(script, program, self.target.device, str(scratch))
        self.doing = "the whole program"
        calls = scratch / module_calls.CALLS
        if not calls.exists():
            raise ProgramError(
                f"{self._function}() of {self.file.name} cannot be run by itself: {tried.signature}",
                hint=f"call it once in a Python of its own: {tried.printed.strip().splitlines()[-1:]}",
            )
        self.recorded = msgspec.json.decode(calls.read_bytes(), type=module_calls.RecordedModel)


class _OfACommand(_Search):
    """A search in a file that a command of the user's is given."""

    def beginnings(self) -> Iterable[ProgramCandidate]:
        whole = ProgramCandidate(self.text, CompileArguments(False))
        self.trying.wanted = replace(self.wanted, status=_UNKNOWN)
        status = self.trying.status_of_command(whole)
        signature = msgspec.structs.replace(self.wanted.signature, type=f"exit {status}")
        self.wanted = self.trying.wanted = replace(self.wanted, status=status, signature=signature)
        if status:
            yield whole

    def with_body(self, candidate: ProgramCandidate, body: str) -> ProgramCandidate:
        return replace(candidate, body=body)


def _guarantee(minimal: bool, stopped: str) -> str:
    if stopped:
        return f"not known to be minimal: {stopped}"
    return "1-minimal: no single statement can be left out" if minimal else ""


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))
