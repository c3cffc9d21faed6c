"""Parse a command line into benchmark cases: programs, models and backends."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from idbg.config import examples
from idbg.config.arguments import parse_program
from idbg.schema.bench import EAGER, BenchBackend, BenchCase
from idbg.schema.errors import BadInput, ProgramError
from idbg.schema.programs import Program

DEFAULT_BACKENDS = (EAGER, "inductor")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def backends(named: Sequence[str]) -> list[BenchBackend]:
    """The backends for NAME and NAME:MODE, each once, eager first: the others' speed-up is over it. Raises BadInput for
    an unknown mode.
    """
    chosen = dict.fromkeys(_backend(text) for text in named or DEFAULT_BACKENDS)
    return sorted(chosen, key=lambda backend: backend.name != EAGER)


def _backend(text: str) -> BenchBackend:
    name, colon, mode = text.partition(":")
    if colon and mode not in MODES:
        raise BadInput(f"torch.compile has no mode {mode!r}", hint=f"write {name}:MODE, one of {', '.join(MODES)}")
    return BenchBackend(name, "" if mode == "default" else mode)


def models(folder: Path | None) -> dict[str, Path]:
    """The programs of the folder by name, each file that defines program(); by default idbg's examples. Raises
    ProgramError if there is no folder.
    """
    folder = folder or examples.folder()
    if folder is None:
        raise ProgramError("there is no folder of examples", hint="name programs, or a folder with --examples")
    return {example.name: example.path for example in examples.in_folder(folder) if example.is_model}


def programs(
    files: Sequence[str],
    wanted: Sequence[str],
    folder: Path | None,
    *,
    everything: bool,
    argv: tuple[str, ...],
    cwd: str,
) -> list[Program]:
    """The files, and the folder's models that are `wanted`, or all."""
    programs_named = [parse_program(file, argv=argv, cwd=cwd) for file in files]
    if not wanted and not everything:
        return programs_named
    known = models(folder)
    for name in wanted:
        if name not in known:
            raise BadInput(f"there is no model {name!r}", hint=f"there are: {', '.join(known) or 'none'}")
    chosen = [known[name] for name in wanted] if wanted else list(known.values())
    return programs_named + [parse_program(_short(path, cwd), cwd=cwd) for path in chosen]


def _short(path: Path, cwd: str) -> str:
    full = path.resolve()
    return str(full.relative_to(cwd) if full.is_relative_to(cwd) else full)


def cases(programs: Sequence[Program], backends: Sequence[BenchBackend], like: BenchCase) -> list[BenchCase]:
    """Every program on every backend, one program after another, with the settings of `like`."""
    return [replace(like, program=program, backend=backend) for program in programs for backend in backends]
