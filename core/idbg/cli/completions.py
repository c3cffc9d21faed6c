"""Complete command lines in bash, zsh and fish with argcomplete.

`idbg completion SHELL` prints argcomplete's script for the shell. On a key press the shell starts `idbg` with
`_ARGCOMPLETE` set, and `answer` writes the candidates.
"""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NoReturn

from argcomplete import autocomplete
from argcomplete.completers import ChoicesCompleter
from argcomplete.shell_integration import shellcode

from idbg.cli import manual, parsing, screen, sessions, verbs
from idbg.schema.errors import IdbgError
from idbg.session.files import LOG

_PROGRAMS = ("idbg", "idbg-tui")
_MAX_SESSIONS = 200
_HEADER = """\
# {shell} completion of idbg and idbg-tui, printed by: idbg completion {shell}
# use it now:     {now}
# and always:     {always}
"""
_USE = {
    "bash": ("source <(idbg completion bash)", "~/.local/share/bash-completion/completions/idbg"),
    "zsh": ("source <(idbg completion zsh)", "a folder of $fpath, as _idbg"),
    "fish": ("idbg completion fish | source", "~/.config/fish/completions/idbg.fish"),
}


def script(shell: str) -> str:
    """The script that `idbg completion SHELL` prints."""
    now, file = _USE[shell]
    code = shellcode(list(_PROGRAMS), shell=shell)
    first, _, rest = code.partition("\n")  # of zsh: #compdef must be the first line
    header = _HEADER.format(shell=shell, now=now, always=f"idbg completion {shell} > {file}")
    return f"{first}\n{header}{rest}" if first.startswith("#compdef") and shell == "zsh" else f"{header}{code}"


def answer(program: str) -> NoReturn:
    """Write the candidates for the command line that the shell passes in COMP_LINE, and exit."""
    line = os.environ.get("COMP_LINE", "")
    autocomplete(
        parser(program, _words(line[: int(os.environ.get("COMP_POINT", len(line)))])),
        always_complete_options=False,
        default_completer=ChoicesCompleter({}),
    )
    raise SystemExit(1)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)[1:]
    except ValueError:  # an open quote
        return line.split()[1:]


def parser(program: str, words: list[str]) -> parsing.Parser:
    """The parser for these words, with a completer for each argument. Only the command that they name is imported."""
    if program == "idbg-tui":
        top = screen.parser()
    else:
        top = parsing.top(with_words=False)
        commands = top.add_subparsers()
        for name in verbs.names():
            added = commands.add_parser(name, help=verbs.help_of(name))
            if name in words:
                commands.choices[name] = added = parsing.of_command(name)
                _add_completers(added, words)
                for each in parsing.under(added):
                    _add_completers(each, words)
    _add_completers(top, words)
    return top


def _add_completers(parser: parsing.Parser, words: list[str]) -> None:
    for action in parser._actions:
        name = manual.named(action)
        if isinstance(action, argparse._SubParsersAction):
            continue
        if name in KINDS:
            action.completer = _completer(KINDS[name])  # type: ignore[attr-defined]  # argcomplete reads it
        elif name in WORDS:
            action.completer = ChoicesCompleter(dict.fromkeys(WORDS[name], ""))  # type: ignore[attr-defined]
    if "--" in words:  # the script's own arguments
        rest = parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
        rest.completer = _completer((_paths,))  # type: ignore[attr-defined]


def _completer(sources: Iterable[Callable[[str], Iterable[str]]]) -> Callable[..., list[str]]:
    def complete(prefix: str, **_: object) -> list[str]:
        return [each for source in sources for each in source(prefix)]

    return complete


def _paths(prefix: str, pattern: str = "", *, folders: bool = True) -> Iterator[str]:
    """The folders, and the files that end with `pattern`, that begin with the prefix."""
    folder, slash, start = prefix.rpartition("/")
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder + slash) or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
            if entry.is_dir() and folders:
                yield f"{folder}{slash}{entry.name}/"
            elif entry.is_file() and entry.name.endswith(pattern):
                yield f"{folder}{slash}{entry.name}"


def _accelerators(prefix: str = "") -> Iterable[str]:
    from idbg.accelerators import registry

    return registry.names()


def _backends(prefix: str = "") -> Iterable[str]:
    """Our backends, and those of other packages."""
    from idbg import plugins
    from idbg.accelerators.adapter import GROUP
    from idbg.schema.programs import OUR_BACKENDS

    return dict.fromkeys([*OUR_BACKENDS, *plugins.names(GROUP), *plugins.names("torch_dynamo_backends")])


def _sessions(prefix: str = "") -> Iterable[str]:
    """The names of sessions in the output folder, the newest first; none where the folder cannot be read."""
    try:
        folder = sessions.output_folder()
        names = sorted((each.name for each in folder.iterdir() if (each / LOG).is_file()), reverse=True)
    except (IdbgError, OSError):
        return []
    return ["last", *(name for name in names[:_MAX_SESSIONS] if name.isprintable())] if names else []


NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "accelerator": _accelerators,
    "backend": _backends,
    "session": _sessions,
}
"""What `idbg completion --words KIND` lists."""
_ANY_FILE = ("FILE", "FILE.json", "FILE.toml", "FILE:LINE", "PYTHON", "SCRIPT")
_folders, _python_files = partial(_paths, pattern="/"), partial(_paths, pattern=".py")
KINDS: Mapping[str, tuple[Callable[[str], Iterable[str]], ...]] = {
    **dict.fromkeys(_ANY_FILE, (_paths,)),
    "ACCELERATOR": (_accelerators, partial(_paths, pattern=".toml", folders=False)),
    "BACKEND": (_backends,),
    "BACKEND[:MODE]": (_backends,),
    "FILE.py[:NAME]": (_python_files,),
    "FOLDER": (_folders,),
    "REFERENCE": (_sessions, _folders),
    "SESSION": (_sessions, _folders),
    "SESSION|FILE.py[:NAME]": (_sessions, _python_files),
    "VERB": (lambda _: verbs.names(),),
}
"""The name of an argument's value in help -> where its candidates come from."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "DEVICE": ("cpu", "cuda", "cuda:0", "mps", "xpu"),
    "DTYPE": ("float32", "bfloat16", "float16"),
    "MODE": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "STANCE": ("default", "eager_on_recompile", "eager_then_compile", "fail_on_recompile", "force_eager"),
}
"""The same for values of which some words are well known."""
