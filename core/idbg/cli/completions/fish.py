"""What completes our command lines in fish, 3.0 and later?"""

from collections.abc import Iterator

from idbg.cli.completions.model import Argument, Command, Program

_HEAD = """\
# fish completion of idbg and idbg-tui; made by: idbg completion fish
# use it now:     idbg completion fish | source
# and always:     idbg completion fish > ~/.config/fish/completions/idbg.fish

# whether the words before the cursor that are no flags begin with these
function __idbg_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l plain
    for word in $words
        string match -q -- '-*' $word; or set -a plain $word
    end
    for at in (seq (count $argv))
        test "$plain[$at]" = "$argv[$at]"; or return 1
    end
    return 0
end

function __idbg_first
    not __fish_seen_subcommand_from $argv
end

function __idbg_files_of
    __fish_complete_suffix $argv[1]
end

"""
_DYNAMIC = {
    "session": "(idbg completion --words session 2>/dev/null) (__fish_complete_directories (commandline -ct))",
    "program": "(idbg completion --words session 2>/dev/null) (__fish_complete_suffix .py)",
    "python": "(__fish_complete_suffix .py)",
    "folder": "(__fish_complete_directories (commandline -ct))",
    "accelerator": "(idbg completion --words accelerator 2>/dev/null) (__fish_complete_suffix .toml)",
    "backend": "(idbg completion --words backend 2>/dev/null)",
}


def script(programs: list[Program]) -> str:
    """The whole script."""
    return _HEAD + "\n".join(line for program in programs for line in _program(program)) + "\n"


def _program(program: Program) -> Iterator[str]:
    name, top = program.name, program.command
    yield f"complete -c {name} -f"
    first = f"__idbg_first {' '.join(each.name for each in top.commands)}" if top.commands else ""
    yield from _arguments(name, top, first, _names(top))
    for each in top.commands:
        yield f"complete -c {name} -n {_quoted(first)} -a {each.name} -d {_quoted(each.help)}"
    for each in top.commands:
        yield ""
        yield from _arguments(name, each, f"__idbg_at {each.name}", _names(top))
        for own in each.commands:
            at = f"__idbg_at {each.name}; and not __fish_seen_subcommand_from {own.name}"
            yield f"complete -c {name} -n {_quoted(at)} -a {own.name} -d {_quoted(own.help)}"
            yield from _arguments(name, own, f"__idbg_at {each.name} {own.name}", _names(top))


def _arguments(name: str, command: Command, where: str, commands: str) -> Iterator[str]:
    only = f" -n {_quoted(where)}" if where else ""
    for each in command.flags:
        names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in each.flags)
        takes = f" {_takes(each, commands)}" if each.takes and not each.optional else ""
        yield f"complete -c {name}{only} {names}{takes} -d {_quoted(each.help)}"
    for each in command.places:
        offered = _offered(each, commands)
        if each.kind == "file":
            yield f"complete -c {name}{only} -F"
        elif offered:
            yield f"complete -c {name}{only} -a {_quoted(offered)}"


def _takes(argument: Argument, commands: str) -> str:
    if argument.kind == "file":
        return "-r -F"
    offered = _offered(argument, commands)
    return f"-x -a {_quoted(offered)}" if offered else "-x"


def _offered(argument: Argument, commands: str) -> str:
    if argument.words:
        return " ".join(argument.words)
    return commands if argument.kind == "command" else _DYNAMIC.get(argument.kind, "")


def _names(top: Command) -> str:
    return " ".join(each.name for each in top.commands)


def _quoted(text: str) -> str:
    """For fish, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
