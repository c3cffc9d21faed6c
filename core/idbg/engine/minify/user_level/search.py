"""Find the smallest script that fails as the user's program does: fewer modules, then fewer statements."""

import builtins
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from idbg.config.program_function import defines_function, file_of
from idbg.engine.compat import dynamo, registrations
from idbg.engine.minify.running import RATE_TRIES, TryRunner
from idbg.engine.minify.search_base import Emit, ScriptSearch
from idbg.engine.minify.user_level import module_calls, modules
from idbg.engine.minify.user_level.callbacks import called_back
from idbg.engine.minify.user_level.failure_pattern import FailurePattern
from idbg.engine.minify.user_level.script import (
    CompileArguments,
    ProgramCandidate,
    as_compiled,
    environment_of,
    line_of,
    ways,
    without_main,
)
from idbg.engine.minify.user_level.script_runs import ScriptRuns, Workspace
from idbg.engine.repro.definitions import own_lowerings
from idbg.engine.repro.failed_compile import TORCH_BACKENDS
from idbg.reduce.sources import parsed
from idbg.reduce.statements import reduce_source
from idbg.schema.errors import ProgramError, exception_text
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Budget, Minified, OtherFailure, Signature

_BUILTIN = "|".join(name for name in dir(builtins) if name.endswith(("Error", "Iteration")) and name != "RuntimeError")
# failures of programs that lack something that they need
_INCOMPLETE = re.compile(
    rf"({_BUILTIN}|InductorError: NameError|TorchRuntimeError|Unsupported: Observed exception|exit status )\b"
)
_UNKNOWN = 1 << 20  # not an exit status


def reduced_program(
    program: Program,
    target: Target,
    pattern: FailurePattern,
    workspace: Workspace,
    budget: Budget,
    emit: Emit = lambda progress: None,
) -> Minified:
    """The smallest script found that fails as the program does; it has been run in a fresh process.

    With the kind "none", the program alone does not fail so. If KeyboardInterrupt or the budget stops the search, the
    result is the smallest script so far. Raises ProgramError if there is no source to reduce, OutputError.
    """
    return _search(program, target, pattern, workspace, budget, emit).run()


def whole_program(program: Program, target: Target, pattern: FailurePattern, workspace: Workspace) -> Path:
    """Write the whole program with a check of its failure, and return the script's path.

    Raises ProgramError if there is no source, OutputError.
    """
    return _search(program, target, pattern, workspace, Budget(), lambda progress: None).written_whole()


def _search(
    program: Program, target: Target, pattern: FailurePattern, workspace: Workspace, budget: Budget, emit: Emit
) -> "ProgramSearch":
    """The search for the kind of program. Raises ProgramError."""
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
    kind = CommandSearch if pattern.command else ModelSearch if defines_function(program) else ProgramSearch
    return kind(
        target, ScriptRuns(TryRunner.within(budget, workspace.forks), program, file, pattern, workspace), budget, emit
    )


class ProgramSearch(ScriptSearch[ProgramCandidate]):
    """Searches a script that calls torch.compile itself."""

    unit = "lines"

    def __init__(self, target: Target, runs: ScriptRuns, budget: Budget, emit: Emit) -> None:
        super().__init__(runs, runs.workspace.known, budget, emit)
        self.target, self.runs = target, runs
        self.program, self.file, self.workspace = runs.program, runs.file, runs.workspace
        self.text = runs.file.read_text(encoding="utf-8").replace("\r\n", "\n")
        self.doing = "the whole program"

    def written_whole(self) -> Path:
        """Write the script with all of the program's text, compiled for the target."""
        beginnings = [*self.beginnings()]
        of_target = [one for one in beginnings if self.is_of_target(one.how)] or beginnings
        self.better(of_target[-1])
        assert self.runs.script is not None
        return self.runs.script

    def search(self) -> None:
        begun = self._begun()
        if begun is None:
            return
        begun = self.nearer(begun)
        self.doing = "statements of the file"
        found = self._reduced(begun)
        if self.runs.pattern.line and self.runs.pattern.pieces:  # now the message alone identifies the failure
            self.doing = "the line that fails"
            found = self._reduced(replace(found, anywhere=True))
        self.doing = "a plainer script"
        for one in self.plainer(found):
            self.improves(one)
        self.minimal = True

    def _begun(self) -> ProgramCandidate | None:
        """The first way to compile the whole in which it fails; None if it fails in none."""
        plainest = None
        for one in self.beginnings():
            plainest = plainest or one
            self.whole = self.whole or _lines(one.body)
            self.tries.begin(one)
            if self.improves(one):
                return one
        return plainest if plainest is not None and self.fails_at_times(plainest, RATE_TRIES) else None

    def _reduced(self, begun: ProgramCandidate) -> ProgramCandidate:
        """The candidate with as few statements, and parts of them, as still fail. Raises Stopped."""
        text = reduce_source(
            begun.body,
            lambda body: self.fails(self.with_body(begun, body)),
            lambda body: self.better(self.with_body(begun, body)),
            self._protected(begun),
            whole=called_back(
                begun.body,
                {name.rpartition(".")[2] for name, _ in registrations.patched()},
                {function.__qualname__.partition(".")[0] for _, function in own_lowerings()},
            ),
        )
        return self.with_body(begun, text)

    def _protected(self, begun: ProgramCandidate) -> list[str]:
        """Pieces of the text that every script must have to show the same failure."""
        given = [f"{name}={value}" for name, value in begun.how.given]
        line = "" if begun.anywhere else line_of(self.runs.pattern, begun.how)
        return [piece for piece in (line, *given) if piece and piece in begun.body]

    # ------------------------------------------------------------- what is tried

    def beginnings(self) -> Iterable[ProgramCandidate]:
        """The whole program in each way to compile it, the plainest first."""
        for how in self.ways():
            yield self.with_body(ProgramCandidate(self.text, how), as_compiled(self.text, how))

    def is_of_target(self, how: CompileArguments) -> bool:
        """Whether the program, or the target, has it compiled in this way."""
        return not how.given

    @property
    def torch_backend(self) -> str:
        """The target's backend by torch's name."""
        return TORCH_BACKENDS.get(self.target.backend) or self.target.backend

    def ways(self) -> list[CompileArguments]:
        """The ways to compile it, the plainest first."""
        name = self.torch_backend
        known = [name] if name in dynamo.backend_names() and name != "eager" else []
        return ways(self.runs.pattern, self.target, ["eager", *known])

    def nearer(self, begun: ProgramCandidate) -> ProgramCandidate:
        """A smaller candidate to begin with, before statements are left out."""
        return begun

    def with_body(self, candidate: ProgramCandidate, body: str) -> ProgramCandidate:
        """The candidate with another text, and the environment that the text needs."""
        return replace(candidate, body=body, environment=environment_of(self.program, self.file, body))

    def plainer(self, candidate: ProgramCandidate) -> Iterable[ProgramCandidate]:
        """The same as an expert would write it; it may not fail."""
        if candidate.how.listens:
            whole = [("fullgraph", "True")] if self.runs.pattern.signature.kind == "break" else []
            how = CompileArguments(False, (*candidate.how.given, *whole))
            yield replace(candidate, how=how, body=as_compiled(candidate.body, how))

    # ------------------------------------------------------------- results

    def better(self, candidate: ProgramCandidate) -> None:
        self.runs.better(candidate)
        self.size = _lines(candidate.body)

    @property
    def others(self) -> tuple[OtherFailure, ...]:
        """Other failures, without those of incomplete programs."""
        return tuple(other for other in self.tries.others if not _INCOMPLETE.match(other.signature))

    def ended(self, stopped: str) -> Minified:
        script = self.runs.script
        signature = self.runs.pattern.signature if script or stopped else Signature("none")
        minified = self.minified(signature, _guarantee(self.minimal, stopped))
        if script is None:
            others = tuple(msgspec.structs.replace(other, path="") for other in self.others)
            note = "" if stopped else self._why_none()
            return msgspec.structs.replace(minified, others=others, note=note, seconds=self.tries.seconds)
        self.say("a fresh process")
        minified = self.runs.finished(minified, self.others)
        return msgspec.structs.replace(minified, seconds=self.tries.seconds, note=self.runs.note)

    def _why_none(self) -> str:
        met = self.tries.first_other
        return (
            f"run by itself, the program fails otherwise: {met}" if met else "run by itself, the program does not fail"
        )


class ModelSearch(ProgramSearch):
    """Searches a file whose function returns a model."""

    recorded = module_calls.RecordedModel((), "")

    def is_of_target(self, how: CompileArguments) -> bool:
        return ("backend", f'"{self.torch_backend}"') in how.given

    def beginnings(self) -> Iterable[ProgramCandidate]:
        self._record()
        for how in self.ways():
            call = modules.whole(self.recorded, self._function, how, self.target)
            yield self.with_body(ProgramCandidate("", how), self._with_call(call, how))

    def nearer(self, begun: ProgramCandidate) -> ProgramCandidate:
        self.doing = "modules"
        how = begun.how

        def calling(call: str) -> ProgramCandidate:
            return self.with_body(begun, self._with_call(call, how))

        found = modules.smallest(
            self.recorded,
            lambda call, made, stored: modules.alone(
                self.recorded, call, self._function, how, made=made, stored=stored and self.workspace.keep_data
            ),
            lambda call: self.fails(calling(call)),
            self.runs.pattern.source,
        )
        if found is None:
            return begun
        module, call = found
        self.runs.note = f"It is the model's {module.path} ({module.name}) alone."
        self.better(calling(call))
        return calling(call)

    def _with_call(self, call: str, how: CompileArguments) -> str:
        return as_compiled(without_main(self.text), how).rstrip("\n") + "\n\n\n" + call

    @property
    def _function(self) -> str:
        return self.program.name or "program"

    def _record(self) -> None:
        """Run the model once without compiling, and record the calls of its modules."""
        self.say("the modules of the model")
        scratch = self.workspace.scratch
        scratch.mkdir(parents=True, exist_ok=True)
        script = scratch / "record.py"
        script.write_text(module_calls.SCRIPT, encoding="utf-8")
        program = msgspec.json.encode(self.program).decode()
        result = self.runs.runner.once(script, program, self.target.device, str(scratch))
        self.doing = "the whole program"
        calls = scratch / module_calls.CALLS
        if not calls.exists():
            raise ProgramError(
                f"{self._function}() of {self.file.name} cannot be run by itself: {result.signature}",
                hint=f"call it once in a Python of its own: {result.printed.strip().splitlines()[-1:]}",
            )
        self.recorded = msgspec.json.decode(calls.read_bytes(), type=module_calls.RecordedModel)


class CommandSearch(ProgramSearch):
    """Searches a file that is given to a command of the user."""

    def beginnings(self) -> Iterable[ProgramCandidate]:
        whole = ProgramCandidate(self.text, CompileArguments(False))
        self.runs.pattern = pattern = replace(self.runs.pattern, status=_UNKNOWN)
        status = self.exit_status(whole) or 0
        signature = msgspec.structs.replace(pattern.signature, type=f"exit {status}")
        self.runs.pattern = replace(pattern, status=status, signature=signature)
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
