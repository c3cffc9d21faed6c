"""The program and the target of a command line. Shared by `idbg` and `idbg-tui`."""

import argparse
import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

import msgspec

from idbg import plugins
from idbg.config import options, places, settings
from idbg.config.settings import Settings
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import BadInput, ProgramError
from idbg.schema.programs import NO_ACCELERATOR, Program, Target
from idbg.schema.strict_json import like

_OTHER_WAYS = ("globals", "vars", "locals", "exec", "setattr", "eval")


def top_level_names(source: bytes) -> list[str] | None:
    """The names that the module defines, in order; None where only running it shows them, or it is not valid."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if any(isinstance(node, ast.Name) and node.id in _OTHER_WAYS for node in ast.walk(tree)):
        return None
    from_functions = [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    names = list(dict.fromkeys([*_names(tree.body), *from_functions]))
    return None if "*" in names or "__getattr__" in names else names


def string_in(source: bytes, name: str) -> str | None:
    """The string that a file assigns to this name at its top level; "" for no assignment, None for another value."""
    if name.encode() not in source:
        return ""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):  # running it reports the error
        return ""
    found: str | None = ""
    for node in body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            value = getattr(node, "value", None)
            found = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
    return found


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that these statements bind, also in an `if` or a `try`, but not in a function or a class."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Name(id=name, ctx=ast.Store()) | ast.MatchAs(name=str(name), pattern=None):
                yield name
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pass
            case _:
                yield from _names(ast.iter_child_nodes(node))


# the types of `torch.device`; a package of the group torch.backends may add another (npu, mlu)
DEVICES = ("cpu", "cuda", "xpu", "mps", "meta", "hpu", "mtia", "xla", "ipu", "maia", "vulkan", "lazy", "privateuseone")


class Request(NamedTuple):
    """The result of the command line, the environment and the settings files. `target.rules` is filled in later."""

    program: Program
    target: Target
    settings: Settings

    @property
    def output(self) -> Path:
        """The folder of sessions. Raises BadInput."""
        return places.expanded(self.settings.output)


BACKENDS = "eager, mock, aot, inductor, aoti, or another package's or torch's by name"


def add_arguments(
    parser: argparse.ArgumentParser,
    *,
    required: bool = True,
    instead: str = "",
    backend: str | None = None,
    backend_words: str = "",
) -> None:
    """The options of a program and its target. `-- ARGS` must be split off first.

    `instead`: what may be named in place of a program. `backend`: the default (None: that of the settings),
    `backend_words`: its description.
    """
    add_program(parser, required=required, instead=instead)
    add_target(parser, backend=backend, backend_words=backend_words)


def add_program(parser: argparse.ArgumentParser, *, required: bool = True, instead: str = "") -> None:
    """FILE.py[:NAME] and -m; the words as in `add_arguments`."""
    words = "a file whose program() (or NAME) returns a model and its inputs, or a script that calls torch.compile"
    parser.add_argument(
        "program",
        metavar="SESSION|FILE.py[:NAME]" if instead else "FILE.py[:NAME]",
        nargs=None if required else "?",
        help=f"{instead}; or {words}" if instead else words,
    )
    parser.add_argument("-m", dest="module", action="store_true", help="FILE is a module: -m package.module")


def add_target(parser: argparse.ArgumentParser, *, backend: str | None = None, backend_words: str = "") -> None:
    """The options of the target, and --output; the words as in `add_arguments`."""
    target = parser.add_argument_group("target")
    target.set_defaults(default_backend=backend)
    target.add_argument("--backend", help=f"{BACKENDS} ({backend_words or backend or 'aot'})")
    target.add_argument(
        "--accelerator",
        metavar="ACCELERATOR",
        help="the hardware's rules: a preset's name or a TOML file "
        "(default: the program's IDBG_ACCELERATOR, else the backend's own, else none)",
    )
    strict = target.add_mutually_exclusive_group()
    strict.add_argument(
        "--strict", action="store_true", default=None, help="a violation whose severity is reject stops the compile"
    )
    strict.add_argument(
        "--warn",
        dest="strict",
        action="store_false",
        default=None,
        help="violations are listed, and the program runs",
    )
    target.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an Inductor config option, or one of the backend's own as torch.compile(options=...) takes it, a table's "
        "with a dot (config.NAME=VALUE); repeat for more",
    )
    _add_conditions(target)
    add_device(target)


def add_device(parser: argparse._ActionsContainer) -> None:
    """--device, --dynamic and --output."""
    parser.add_argument("--device", help="cpu, cuda, cuda:1, ...: move the program there (default: it stays)")
    parser.add_argument(
        "--dynamic", action=argparse.BooleanOptionalAction, help="symbolic shapes, as torch.compile(dynamic=)"
    )
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (default: debug_artifacts)")


def _add_conditions(target: argparse._ArgumentGroup) -> None:
    """The settings of torch beside the backend's options."""
    target.add_argument("--mode", help="torch.compile's: default, reduce-overhead, max-autotune, ... (the program's)")
    target.add_argument(
        "--stance", help="torch.compiler.set_stance's: force_eager, eager_on_recompile, fail_on_recompile, ..."
    )
    target.add_argument(
        "--setting",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="another setting of torch's: dynamo.recompile_limit=2, functorch.NAME, compiler.NAME; repeat for more",
    )
    target.add_argument(
        "--dynamic-source",
        metavar="SOURCE",
        action="append",
        dest="dynamic_sources",
        help="mark this as dynamic, as torch.compiler.config.dynamic_sources does: \"L['x']\"; repeat for more",
    )
    target.add_argument("--cold", action="store_true", help="read and write none of torch's caches")


def flags_of(args: argparse.Namespace) -> dict[str, object]:
    """The settings that the command line sets, or has its own default for."""
    named = {name: getattr(args, name, None) for name in Settings.__struct_fields__}
    named["backend"] = named["backend"] or getattr(args, "default_backend", None)
    return {name: value for name, value in named.items() if value is not None}


def settle(
    args: argparse.Namespace,
    argv: tuple[str, ...],
    *,
    strict: bool = False,
    environ: Mapping[str, str] = os.environ,
    cwd: str | None = None,
) -> Request:
    """The program, the target and the settings of a command line. `strict`: the default of the front end.

    Raises ProgramError, SettingsError or BadInput (an option without a value) with a hint.
    """
    cwd = cwd or os.getcwd()
    chosen = settings.load(environ, flags_of(args), cwd)
    _check_utf8(
        [text for text in (*msgspec.structs.astuple(chosen), *args.option, *args.setting) if isinstance(text, str)]
    )
    check_device(chosen.device)
    whose = options.family(chosen.backend)
    named = dict(options.parse(text) for text in args.option)
    program = parse_program(args.program, module=args.module, argv=argv, cwd=cwd)
    by_setting = "default_backend" in args and not args.default_backend and settings.is_set("backend", environ, cwd)
    is_chosen = "backend" not in args or bool(args.backend) or by_setting  # `check` chooses the backend by the stage
    target = like(
        Target,
        chosen,
        own_backend=not is_chosen,
        strict=strict if chosen.strict is None else chosen.strict,
        float64_memory=_bytes_of(chosen.float64_memory),
        accelerator=chosen.accelerator or accelerator_of(program, chosen.backend, environ),
        options=named if whose != options.INDUCTOR else {**chosen.options, **named},
        options_for=whose,
        settings={**chosen.settings, **dict(options.parse(text, "--setting") for text in args.setting)},
        dynamic_sources=tuple(args.dynamic_sources or ()),
        cold=args.cold,
    )
    return Request(program, target, chosen)


def _bytes_of(size: int | str) -> int:
    try:
        return settings.bytes_of(size)
    except ValueError as error:
        raise BadInput(f"--memory: {error}", hint="0 is what the device has free") from error


def request_of(args: argparse.Namespace, program: Program, target: Target) -> Request:
    """A request for this program and target, with the --output of the command line. Raises SettingsError."""
    return Request(program, target, settings.load(os.environ, {"output": args.output} if args.output else {}))


def accelerator_of(program: Program, backend: str, environ: Mapping[str, str] = os.environ) -> str:
    """The default accelerator: the backend's own; else IDBG_ACCELERATOR of the program's file, where a TOML file is
    relative to it; else `settings.default_accelerator`. Raises ProgramError.
    """
    own = settings.default_accelerator(backend, environ)
    if own not in (NO_ACCELERATOR, "mock") or program.module:
        return own
    file = Path(program.cwd, program.path)
    named = string_in(file.read_bytes(), "IDBG_ACCELERATOR")
    if named is None:
        raise ProgramError(
            f"{program.path}: IDBG_ACCELERATOR is not a string", hint='for example IDBG_ACCELERATOR = "tpu"'
        )
    return str(file.parent / named) if named.endswith(".toml") else named or own


def parse_program(text: str, *, module: bool = False, argv: tuple[str, ...] = (), cwd: str) -> Program:
    """The program that `text` names, relative to `cwd`. Raises ProgramError if it does not exist."""
    _check_utf8((text, cwd, *argv))
    if not text.strip():
        raise ProgramError("no program is named", hint="name a Python file, or with -m a module")
    whole_exists = not module and os.path.exists(os.path.join(cwd, text))
    path, _, name = (text, "", "") if whole_exists else _split_name(text)
    if module:
        _check_module(path, cwd)
    else:
        _check_file(path, Path(cwd))
        if name:
            _check_name(Path(cwd, path), path, name)
    return Program(path=path, name=name, module=module, argv=argv, cwd=cwd)


def check_program(program: Program) -> None:
    """Raises ProgramError where the program of a session is not there any more."""
    if program.module:
        _check_module(program.path, program.cwd)
    else:
        _check_file(program.path, Path(program.cwd))


def check_device(name: str) -> None:
    """Raises BadInput if torch knows no such device. Torch itself finds out whether this machine has it."""
    kind, colon, index = name.partition(":")
    is_known = not name or kind in DEVICES or plugins.names("torch.backends")
    if is_known and (not colon or index.isdecimal()):
        return
    hint = did_you_mean(kind, () if kind in DEVICES else DEVICES, "for example cpu, cuda, cuda:1 or xpu")
    raise BadInput(f"there is no device {name!r}", hint=hint)


def _check_utf8(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ProgramError(f"the name {text!r} is not UTF-8", hint="rename the file or the folder") from error


def _split_name(text: str) -> tuple[str, str, str]:
    path, colon, name = text.rpartition(":")
    if not colon:
        return text, "", ""
    if not name.isidentifier():
        raise ProgramError(f"{text}: {name!r} is not the name of a function", hint="write FILE.py:NAME")
    return path, colon, name


def _check_file(text: str, cwd: Path) -> None:
    path = cwd / text
    places.check_length(path)
    if path.is_dir():
        if next(path.glob("dedicated_log_torch_trace_*"), None) is not None:
            hint = f"idbg open {text} shows it, idbg import {text} --accelerator NAME checks its graphs"
            raise ProgramError(f"{text} is a trace of another job: the program is not in it", hint=hint)
        raise ProgramError(f"{text} is a folder", hint=_found_in(path) or "name a Python file in it")
    if not path.exists():
        raise ProgramError(f"no file {text}", hint=_nearest(path) or f"looked in {cwd}")
    if not path.is_file():  # reading a pipe would block
        raise ProgramError(f"{text} is not a regular file", hint="name a Python file, or a module with -m")
    if path.suffix not in (".py", ".pyw"):
        raise ProgramError(f"{text} is not a Python file", hint="name a file that ends in .py, or a module with -m")
    if not os.access(path, os.R_OK):
        raise ProgramError(f"{text} cannot be read", hint="check its permissions")


def _check_name(file: Path, path: str, name: str) -> None:
    """Raises ProgramError for a name that the file does not define. Where that is unclear the worker finds out."""
    defined = top_level_names(file.read_bytes())
    if defined is None or name in defined:
        return
    there = ", ".join([known for known in defined if not known.startswith("_")][:8])
    hint = did_you_mean(name, defined, f"it has {there}" if there else "it defines nothing")
    raise ProgramError(f"{path} defines no {name!r}", hint=hint)


def _check_module(name: str, cwd: str) -> None:
    if name.endswith(".py") or not re.fullmatch(r"\w+(\.\w+)*", name):
        raise ProgramError(
            f"-m {name}: this is not a module's name", hint="write -m package.module, or FILE.py without -m"
        )
    top = name.partition(".")[0]
    if PathFinder.find_spec(top, [cwd, *sys.path]) is None:
        raise ProgramError(f"-m {name}: there is no module {top}", hint=f"looked in {cwd} and in sys.path")


def _found_in(folder: Path) -> str:
    files = sorted(path.name for path in folder.glob("*.py"))
    return f"name a Python file in it: {', '.join(files[:5])}" if files else ""


def _nearest(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == ".py"]
    except OSError:
        return f"there is no folder {path.parent}"
    return did_you_mean(path.stem, [name.removesuffix(".py") for name in names], form="{}.py".format)
