"""How does a shell learn what can come next on our command lines?"""

import argparse
from collections.abc import Callable, Iterable, Mapping

from idbg.cli import exits, output, sessions
from idbg.schema.errors import IdbgError
from idbg.session.files import LOG

HELP = "print a script that completes command lines in bash, zsh or fish"
ABOUT = """\
Print a script that completes the command lines of idbg and idbg-tui: commands, flags, choices, files and folders of the
right kind; sessions, accelerators and backends are looked up when they are asked for. The script says in its first
lines where to put it.
"""
EXAMPLES = (
    ("idbg completion bash > ~/.local/share/bash-completion/completions/idbg", "for bash, from the next shell on"),
    ("idbg completion zsh > ~/.zfunc/_idbg", "for zsh, where ~/.zfunc is in $fpath"),
    ("idbg completion fish > ~/.config/fish/completions/idbg.fish", "for fish"),
)
EXITS = {exits.DONE: "it was printed"}
NO_JSON = "it is a script for a shell; idbg help COMMAND --json has what it is made of"
SHELLS = ("bash", "fish", "zsh")
MOST = 200  # sessions: of more nobody chooses by this


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """For which shell."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="bash, fish or zsh")
    what.add_argument("--words", choices=tuple(WORDS), help="the names of this kind that there are now, a line each")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Print the script, or names."""
    if args.words:
        output.say("\n".join(WORDS[args.words]()))
        return exits.DONE
    from idbg.cli import completions, no_collection

    with no_collection():  # every command is imported
        programs = completions.programs()
    output.say(completions.SHELLS[args.shell](programs).rstrip("\n"))
    return exits.DONE


def _accelerators() -> Iterable[str]:
    from idbg.accelerators import registry

    return registry.names()


def _backends() -> Iterable[str]:
    """Ours, and those of other packages, as torch and we find them."""
    from idbg import plugins
    from idbg.accelerators.adapter import GROUP
    from idbg.schema.programs import OUR_BACKENDS

    return dict.fromkeys([*OUR_BACKENDS, *plugins.names(GROUP), *plugins.names("torch_dynamo_backends")])


def _sessions() -> Iterable[str]:
    """Their names in the output folder, of each program the newest first. None where they cannot be read."""
    try:
        folder = sessions.output_folder()
        names = sorted((each.name for each in folder.iterdir() if (each / LOG).is_file()), reverse=True)
    except (IdbgError, OSError):
        return []
    return ["last", *(name for name in names[:MOST] if name.isprintable())] if names else []


WORDS: Mapping[str, Callable[[], Iterable[str]]] = {
    "accelerator": _accelerators,
    "backend": _backends,
    "session": _sessions,
}
