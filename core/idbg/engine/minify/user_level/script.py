"""Write a candidate as one script: the user's file, after code that checks how it fails.

`python FILE` exits 1 with a line REPRODUCED if it fails as expected, 2 with a line OTHER if it fails in another way, 0
if it runs to its end.
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
from idbg.engine.repro.check_pieces import faults_of, says
from idbg.engine.repro.layout import laid_out, quotable
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
    print("REPRODUCED", {signature!r})
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
        """The arguments after the program in a call of torch.compile."""
        return "".join(f", {name}={value}" for name, value in self.given)


@dataclass(frozen=True)
class Environment:
    """Settings with which the file runs in another folder: arguments, working folder, folders of modules, package."""

    argv: tuple[str, ...] = ()
    cwd: str = ""
    paths: tuple[str, ...] = ()
    package: str = ""
    file: str = ""

    @property
    def lines(self) -> list[str]:
        """The statements that set it up."""
        lines = [f"sys.argv[1:] = {list(self.argv)!r}"] if self.argv else []
        lines += [f"os.chdir({self.cwd!r})"] if self.cwd else []
        lines += [f"sys.path.insert(1, {path!r})  # its own modules" for path in self.paths]
        lines += [f"__package__ = {self.package!r}"] if self.package else []
        return lines + ([f"__file__ = {self.file!r}"] if self.file else [])


@dataclass(frozen=True)
class ProgramCandidate:
    """One script. `body` is what is left of the user's file, with the code that calls its model. `anywhere`: the
    failure may be at any line, so that the user's line may be reduced too.
    """

    body: str
    how: CompileArguments
    environment: Environment = field(default_factory=Environment)
    anywhere: bool = False

    @property
    def key(self) -> str:
        """Two candidates with equal keys have the same result."""
        return repr((self.body, self.how, self.environment, self.anywhere))

    @property
    def loads_tensors(self) -> bool:
        """Whether it loads a file of tensors."""
        return "load_file(" in self.body


def render(candidate: ProgramCandidate, pattern: FailurePattern, note: str = "") -> str:
    """The script's text."""
    future, body = _without_future(candidate.body)
    docstring = _docstring(pattern, candidate, note)
    pattern = replace(pattern, line="" if candidate.anywhere else line_of(pattern, candidate.how))
    check = _listener(pattern) if candidate.how.listens else []
    raises = pattern.signature.kind == "recompile" and not check
    imports = {"import sys", "import traceback"}
    imports |= {"import os"} if candidate.environment.cwd else set()
    imports |= {"import logging"} if check else set()
    imports |= {"from pathlib import Path"} if candidate.loads_tensors else set()
    ordered = sorted(imports, key=lambda line: (line.startswith("from"), line))
    settings = ["torch._dynamo.config.error_on_recompile = True"] if raises else []
    parts = [
        "\n".join(docstring),
        "\n".join([*future, *ordered, "", "import torch"]),
        "\n".join(_constants(pattern, candidate)),
        "\n".join(_judge(pattern)),
        "\n".join([*check, *settings, *candidate.environment.lines]),
        "# What is left of the program\n" + body.strip("\n"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _docstring(pattern: FailurePattern, candidate: ProgramCandidate, note: str) -> Iterator[str]:
    yield f'"""{quotable(pattern.title)}'
    yield ""
    if pattern.message:
        for line in pattern.message:
            yield from textwrap.wrap(quotable(line), _WIDTH, initial_indent="    ", subsequent_indent="      ")
        yield ""
    if pattern.source:
        yield f"From {pattern.source}" + (f": {quotable(pattern.line)}" if pattern.line else "")
    if candidate.environment.paths:
        yield f"It imports modules of the program's own from {', '.join(candidate.environment.paths)}"
    if note:
        yield note
    yield f"Written by idbg {__version__} with torch {torch.__version__}. Run it: python repro.py"
    yield EXITS
    yield '"""'


def _constants(pattern: FailurePattern, candidate: ProgramCandidate) -> list[str]:
    return [
        *(["HERE = Path(__file__).resolve().parent"] if candidate.loads_tensors else []),
        *laid_out(f"ERROR = {pattern.error!r}"),
        *(laid_out(f"LINE = {pattern.line!r}") if pattern.line else []),
        *laid_out(f"MESSAGE = {pattern.pieces!r}"),
        *faults_of("".join(pattern.pieces)),
    ]


def _judge(pattern: FailurePattern) -> list[str]:
    named = "type(link).__name__ == ERROR and " if pattern.error else ""
    has_message = says(pattern.error, "".join(pattern.pieces), "all(piece in {} for piece in MESSAGE)")
    return [
        "",
        "def ended_by(kind, error, trace):",
        '    """Exit with 1 if this is the failure that is looked for, with 2 if not."""',
        "    lines, links = traceback.format_exception(error), [error]",
        '    print("".join(lines), file=sys.stderr)',
        "    while link := links[-1].__cause__ or links[-1].__context__:",
        "        links.append(link)",
        f"    same = any({named}{has_message} for link in links)",
        '    if same and LINE in "".join(lines):' if pattern.line else "    if same:",
        *laid_out(f'print("REPRODUCED", {_reproduced(pattern)})', 2),
        "        sys.exit(1)",
        '    root = getattr(error, "inner_exception", error)',
        '    print(f"OTHER {type(root).__name__}: {str(root).strip().partition(chr(10))[0]}")',
        "    sys.exit(2)",
        "",
        "",
        "sys.excepthook = ended_by",
    ]


def _reproduced(pattern: FailurePattern) -> str:
    return repr(" ".join(f"{pattern.title} at {pattern.line}".split()) if pattern.line else pattern.title)


def _listener(pattern: FailurePattern) -> list[str]:
    return [
        "",
        "class Listener(logging.Handler):",
        '    """Exit with 1 when torch logs the failure that is looked for."""',
        "",
        "    def emit(self, record):",
        "        message = record.getMessage()",
        "        if all(piece in message for piece in MESSAGE)" + (" and LINE in message:" if pattern.line else ":"),
        *laid_out(f'print("REPRODUCED", {_reproduced(pattern)})', 3),
        "            sys.exit(1)",
        "",
        "",
        "torch._logging.set_logs(graph_breaks=True, recompiles=True)",
        'logging.getLogger("torch._dynamo").addHandler(Listener())',
    ]


def _without_future(body: str) -> tuple[list[str], str]:
    """The imports from __future__, which must come first, and the rest."""
    source = PythonSource(body)
    future = [node for node in source.tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return [source.of(node).decode() for node in future], source.without(future)


def as_compiled(text: str, how: CompileArguments) -> str:
    """The file's text with these arguments in each call of `torch.compile`."""
    if not how.given:
        return text
    source, edits = PythonSource(text), []
    names = {"backend", "mode", "options", *(name for name, _ in how.given)}
    decorators = {
        id(each) for node in ast.walk(source.tree) for each in getattr(node, "decorator_list", ()) if _is_compile(each)
    }
    for node in ast.walk(source.tree):
        kept: list[bytes] = []
        if isinstance(node, ast.Call) and _is_compile(node.func):
            kept = [*map(source.of, node.args)]
            kept += [source.of(each) for each in node.keywords if each.arg not in names]
        elif id(node) not in decorators or not isinstance(node, ast.expr):
            continue
        given = ", ".join([*(each.decode() for each in kept), *(f"{name}={value}" for name, value in how.given)])
        edits.append(Edit(source.start(node), source.end(node), f"{_COMPILE}({given})".encode()))
    return source.edited(edits)


def line_of(pattern: FailurePattern, how: CompileArguments) -> str:
    """The line of the failure, as it is with these arguments: it may call torch.compile itself."""
    try:
        return as_compiled(pattern.line, how)
    except SyntaxError:  # a part of a statement
        return pattern.line


def _is_compile(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == _COMPILE


def without_main(text: str) -> str:
    """The text without `if __name__ == "__main__"`, which does not run when the file is imported."""
    source = PythonSource(text)
    mains = [
        node
        for node in source.tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")
    ]
    return source.without(mains)


def ways(pattern: FailurePattern, target: Target, backends: Iterator[str] | list[str]) -> list[CompileArguments]:
    """The arguments to try, the plainest first: a backend that compiles nothing, if that still fails."""
    found = []
    dynamic = [("dynamic", repr(target.dynamic))] if target.dynamic is not None else []
    for backend in backends:
        options = [("options", repr(dict(target.options)))] if target.options and backend != "eager" else []
        given = [("backend", repr(backend).replace("'", '"')), *options, *dynamic]
        whole = [("fullgraph", "True")] if pattern.signature.kind == "break" else []
        found += [CompileArguments(False, (*given, *whole))]
        found += [CompileArguments(True, tuple(given))] if pattern.is_logged else []
    return [*found, CompileArguments(False), *([CompileArguments(True)] if pattern.is_logged else [])]


def environment_of(program: Program, file: Path, text: str, *, everything: bool = False) -> Environment:
    """The environment that a text of the program's file needs; with `everything`, also what it seems not to need."""
    cwd = os.path.abspath(program.cwd or ".")
    folder = cwd if program.module else str(file.parent.resolve())
    tree = ast.parse(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in nodes)
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    imported = {name.partition(".")[0] for name in modules if name}
    own = any(Path(folder, name).is_dir() or Path(folder, f"{name}.py").is_file() for name in imported)
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    paths = any(0 < len(word) < 200 and "\0" not in word and Path(cwd, word).is_file() for word in words)
    return Environment(
        program.argv,
        cwd if everything or paths or "getcwd" in text or ".cwd()" in text else "",
        (folder,) if everything or own or relative else (),
        program.path.rpartition(".")[0] if program.module and relative else "",
        str(file.resolve()) if "__file__" in text else "",
    )


def command_script(pattern: FailurePattern, name: str, original: str, folder: str, cwd: str) -> str:
    """A script that runs the command on the file `name` beside it, with the folder and the modules of the program."""
    words = shlex.join(pattern.command)
    return _COMMAND_SCRIPT.format(
        words=quotable(words),
        name=name,
        original=quotable(original),
        status=pattern.status,
        version=__version__,
        torch=torch.__version__,
        exits=EXITS,
        command=list(pattern.command),
        folder=folder,
        cwd=cwd,
        signature=f"{words} {name} exits with {pattern.status}",
    )
