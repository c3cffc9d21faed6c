"""Print the script that completes our command lines in a shell."""

import argparse

from idbg.cli import exits, output

HELP = "print a script that completes command lines in bash, zsh or fish"
ABOUT = """\
Print a script that completes the command lines of idbg and idbg-tui: commands, flags, choices, files and folders of the
right kind, sessions, accelerators and backends. The first lines of the script say where to put it.
"""
EXAMPLES = (
    ("idbg completion bash > ~/.local/share/bash-completion/completions/idbg", "for bash, from the next shell on"),
    ("idbg completion zsh > ~/.zfunc/_idbg", "for zsh, where ~/.zfunc is in $fpath"),
    ("idbg completion fish > ~/.config/fish/completions/idbg.fish", "for fish"),
)
EXITS = {exits.DONE: "the script was printed"}
SHELLS = ("bash", "fish", "zsh")
NO_JSON = "the output is a shell script; idbg help COMMAND --json has the arguments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    kinds = ("accelerator", "backend", "session")
    what.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="bash, fish or zsh")
    what.add_argument("--words", choices=kinds, help="list the names of this kind, one per line")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.cli import completions

    output.say("\n".join(completions.NAMES[args.words]()) if args.words else completions.script(args.shell).rstrip())
    return exits.DONE
