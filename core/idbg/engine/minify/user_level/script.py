"""What does a candidate say: the user's own file, with a head that judges how it ends, and a tail that calls it?

One file, that `python FILE` runs: it exits 1 with a line REPRODUCED where it fails as is looked for, 2 with a line
OTHER where it fails otherwise, and 0 where it runs to its end.
"""

import ast
import os
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from idbg import __version__
from idbg.engine.minify.user_level.failure_pattern import FailurePattern
from idbg.engine.repro.check_pieces import message_of
from idbg.engine.repro.layout import laid_out
from idbg.reduce.sources import Edit, PythonSource
from idbg.schema.programs import Program, Target

_WIDTH = 110
_COMPILE = "torch.compile"
_COMMAND_SCRIPT = '''\
"""`{words} {name}` exits with {status}

{name} is what is left of {original}, in which each statement is needed for that.
Written by idbg {version} with torch {torch}. Run it: python repro.py
{exits}
"""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = {command!r}
FILE = Path(__file__).resolve().with_name({name!r})

paths = [{folder!r}, *filter(None, [os.environ.get("PYTHONPATH")])]  # the program's own modules
environment = os.environ | {{"PYTHONPATH": os.pathsep.join(paths)}}
done = subprocess.run([*COMMAND, str(FILE)], cwd={cwd!r}, env=environment)
if done.returncode == {status}:
    print("REPRODUCED", {told!r})
    sys.exit(1)
if done.returncode:
    print(f"OTHER exit status {{done.returncode}}")
    sys.exit(2)
'''
EXITS = (
    "It exits 1 and prints REPRODUCED if it still fails so, 0 if it does not fail, and 2 if it fails in another way."
)


@dataclass(frozen=True)
class CompileArguments:
    """Arguments of the program's calls of torch.compile, as Python (`backend="eager"`); () leaves the program's own.
    With `listens`, breaks and recompiles are found in torch's log, instead of having torch raise at the first.
    """

    listens: bool = False
    given: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> str:
        """What follows the program in a call of torch.compile."""
        return "".join(f", {name}={value}" for name, value in self.given)


@dataclass(frozen=True)
class Environment:
    """What the file needs to run elsewhere as it does in its place: arguments, folder, folders of modules, package."""

    argv: tuple[str, ...] = ()
    cwd: str = ""
    paths: tuple[str, ...] = ()
    package: str = ""
    file: str = ""

    @property
    def lines(self) -> list[str]:
        """Statements before the file's own."""
        lines = [f"sys.argv[1:] = {list(self.argv)!r}"] if self.argv else []
        lines += [f"os.chdir({self.cwd!r})"] if self.cwd else []
        lines += [f"sys.path.insert(1, {path!r})  # its own modules" for path in self.paths]
        lines += [f"__package__ = {self.package!r}"] if self.package else []
        return lines + ([f"__file__ = {self.file!r}"] if self.file else [])


@dataclass(frozen=True)
class ProgramCandidate:
    """One script. `body` is what is left of the user's file, and of what calls the model that it makes. `anywhere`: it
    may fail at any line, so that less of the user's line is tried too.
    """

    body: str
    how: CompileArguments
    around: Environment = field(default_factory=Environment)
    anywhere: bool = False

    @property
    def key(self) -> str:
        """Names what it does."""
        return repr((self.body, self.how, self.around, self.anywhere))

    @property
    def is_given_tensors(self) -> bool:
        """Whether it loads a file of tensors."""
        return "load_file(" in self.body


def render(candidate: ProgramCandidate, wanted: FailurePattern, note: str = "") -> str:
    """The script's text."""
    future, body = _without_future(candidate.body)
    told = _told(wanted, candidate, note)
    wanted = replace(wanted, line="") if candidate.anywhere else wanted
    check = _listener(wanted) if candidate.how.listens else []
    raises = ["torch._dynamo.config.error_on_recompile = True"] if _raises_recompile(wanted, candidate) else []
    imports = {"import sys", "import traceback"}
    imports |= {"import os"} if candidate.around.cwd else set()
    imports |= {"import logging"} if check else set()
    imports |= {"from pathlib import Path"} if candidate.is_given_tensors else set()
    parts = [
        "\n".join(told),
        "\n".join([*future, *_ordered(imports)]),
        "\n".join(_constants(wanted, candidate)),
        "\n".join(_judge(wanted)),
        "\n".join([*check, *raises, *candidate.around.lines]),
        "# What is left of the program\n" + body.strip("\n"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _raises_recompile(wanted: FailurePattern, candidate: ProgramCandidate) -> bool:
    return wanted.signature.kind == "recompile" and not candidate.how.listens


def _told(wanted: FailurePattern, candidate: ProgramCandidate, note: str) -> Iterator[str]:
    """The docstring."""
    yield f'"""{quotable(wanted.title)}'
    yield ""
    if wanted.message:
        for line in wanted.message:
            yield from textwrap.wrap(quotable(line), _WIDTH, initial_indent="    ", subsequent_indent="      ")
        yield ""
    if wanted.source:
        yield f"From {wanted.source}" + (f": {quotable(wanted.line)}" if wanted.line else "")
    if candidate.around.paths:
        yield f"It imports modules of the program's own from {', '.join(candidate.around.paths)}"
    if note:
        yield note
    yield f"Written by idbg {__version__} with torch {torch.__version__}. Run it: python repro.py"
    yield EXITS
    yield '"""'


def _constants(wanted: FailurePattern, candidate: ProgramCandidate) -> list[str]:
    return [
        *(["HERE = Path(__file__).resolve().parent"] if candidate.is_given_tensors else []),
        *laid_out(f"ERROR = {wanted.error!r}"),
        *(laid_out(f"LINE = {wanted.line!r}") if wanted.line else []),
        *laid_out(f"MESSAGE = {wanted.pieces!r}"),
    ]


def _judge(wanted: FailurePattern) -> list[str]:
    named = "type(link).__name__ == ERROR and " if wanted.error else ""
    return [
        "",
        "def ended_by(kind, error, trace):",
        '    """What ended this file: is it the failure that is looked for?"""',
        "    told, links = traceback.format_exception(error), [error]",
        '    print("".join(told), file=sys.stderr)',
        "    while link := links[-1].__cause__ or links[-1].__context__:",
        "        links.append(link)",
        f"    same = any({named}all(piece in {message_of(wanted.error)} for piece in MESSAGE) for link in links)",
        '    if same and LINE in "".join(told):' if wanted.line else "    if same:",
        *laid_out(f'print("REPRODUCED", {_told_by(wanted)})', 2),
        "        sys.exit(1)",
        '    print(f"OTHER {kind.__name__}: {str(error).strip().partition(chr(10))[0]}")',
        "    sys.exit(2)",
        "",
        "",
        "sys.excepthook = ended_by",
    ]


def _told_by(wanted: FailurePattern) -> str:
    return repr(" ".join(f"{wanted.title} at {wanted.line}".split()) if wanted.line else wanted.title)


def _listener(wanted: FailurePattern) -> list[str]:
    return [
        "",
        "class Collector(logging.Handler):",
        '    """Ends this file where torch tells of what is looked for."""',
        "",
        "    def emit(self, record):",
        "        told = record.getMessage()",
        "        if all(piece in told for piece in MESSAGE)" + (" and LINE in told:" if wanted.line else ":"),
        *laid_out(f'print("REPRODUCED", {_told_by(wanted)})', 3),
        "            sys.exit(1)",
        "",
        "",
        "torch._logging.set_logs(graph_breaks=True, recompiles=True)",
        'logging.getLogger("torch._dynamo").addHandler(Collector())',
    ]


def _ordered(imports: set[str]) -> list[str]:
    return [*sorted(imports, key=lambda line: (line.startswith("from"), line)), "", "import torch"]


def _without_future(body: str) -> tuple[list[str], str]:
    """What must stand before all else, and the rest."""
    source = PythonSource(body)
    future = [node for node in source.tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return [source.of(node).decode() for node in future], source.without(future)


def quotable(text: str) -> str:
    """As it can stand in a docstring."""
    return text.replace("\\", "/").replace('"""', "'''")


def as_compiled(text: str, how: CompileArguments) -> str:
    """The file's text with the arguments of each `torch.compile` as they are to be."""
    if not how.given:
        return text
    source, edits = PythonSource(text), []
    names = {"backend", "mode", "options", *(name for name, _ in how.given)}
    decorators = {
        id(each) for node in ast.walk(source.tree) for each in getattr(node, "decorator_list", ()) if _is_compile(each)
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _is_compile(node.func):
            kept = [source.of(each).decode() for each in node.args]
            kept += [source.of(each).decode() for each in node.keywords if each.arg not in names]
            given = ", ".join([*kept, *(f"{name}={value}" for name, value in how.given)])
            edits.append(Edit(source.start(node), source.end(node), f"{_COMPILE}({given})".encode()))
        elif id(node) in decorators and isinstance(node, ast.expr):
            given = ", ".join(f"{name}={value}" for name, value in how.given)
            edits.append(Edit(source.start(node), source.end(node), f"{_COMPILE}({given})".encode()))
    return source.edited(edits)


def _is_compile(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == _COMPILE


def without_main(text: str) -> str:
    """The text of a file that is imported: what is for `python FILE` does not run then."""
    source = PythonSource(text)
    mains = [
        node
        for node in source.tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")
    ]
    return source.without(mains)


def ways(wanted: FailurePattern, target: Target, backends: Iterator[str] | list[str]) -> list[CompileArguments]:
    """The arguments to try, the plainest first: a backend that compiles nothing, if that still fails."""
    found = []
    dynamic = [("dynamic", repr(target.dynamic))] if target.dynamic is not None else []
    for backend in backends:
        options = [("options", repr(dict(target.options)))] if target.options and backend != "eager" else []
        given = [("backend", repr(backend).replace("'", '"')), *options, *dynamic]
        whole = [("fullgraph", "True")] if wanted.signature.kind == "break" else []
        found += [CompileArguments(False, (*given, *whole))]
        found += [CompileArguments(True, tuple(given))] if wanted.is_heard else []
    return [*found, CompileArguments(False), *([CompileArguments(True)] if wanted.is_heard else [])]


def around(program: Program, file: Path, text: str, *, everything: bool = False) -> Environment:
    """What a text of the program's file needs of its place; with `everything`, also what it seems not to."""
    cwd = os.path.abspath(program.cwd or ".")
    folder = cwd if program.module else str(file.parent.resolve())
    tree = ast.parse(text)
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    own = any(Path(folder, name).is_dir() or Path(folder, f"{name}.py").is_file() for name in imported if name)
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    paths = any(0 < len(word) < 200 and "\0" not in word and Path(cwd, word).is_file() for word in words)
    return Environment(
        program.argv,
        cwd if everything or paths or "getcwd" in text or ".cwd()" in text else "",
        (folder,) if everything or own or relative else (),
        program.path.rpartition(".")[0] if program.module and relative else "",
        str(file.resolve()) if "__file__" in text else "",
    )


def command_script(wanted: FailurePattern, name: str, original: str, folder: str, cwd: str) -> str:
    """The script that gives the file `name` beside it to the command, in the folder and with the modules of the
    program.
    """
    words = shlex.join(wanted.command)
    return _COMMAND_SCRIPT.format(
        words=quotable(words),
        name=name,
        original=quotable(original),
        status=wanted.status,
        version=__version__,
        torch=torch.__version__,
        exits=EXITS,
        command=list(wanted.command),
        folder=folder,
        cwd=cwd,
        told=f"{words} {name} exits with {wanted.status}",
    )
