"""What completes our command lines in zsh, 5 and later?"""

from collections.abc import Iterator

from idbg.cli.completions.model import Argument, Command, Program

_HEAD = """\
#compdef idbg idbg-tui
# zsh completion of idbg and idbg-tui; made by: idbg completion zsh
# use it now:     source <(idbg completion zsh)
# and always:     idbg completion zsh > a folder of $fpath, as _idbg

_idbg_accelerator() {
    local -a names=(${(f)"$(idbg completion --words accelerator 2>/dev/null)"})
    _alternative "accelerators:accelerator:($names)" 'files:file:_files -g "*.toml"'
}
_idbg_backend() {
    local -a names=(${(f)"$(idbg completion --words backend 2>/dev/null)"})
    compadd -a names
}
_idbg_session() {
    local -a names=(${(f)"$(idbg completion --words session 2>/dev/null)"})
    compadd -f -a names
    _files -/
}
_idbg_program() {
    _idbg_session
    _files -g '*.py'
}
_idbg_python() {
    _files -g '*.py'
}
"""
_TAIL = """
_idbg_complete() {
    case $service in
        idbg-tui) _idbg_of_idbg_tui "$@" ;;
        *) _idbg_of_idbg "$@" ;;
    esac
}

if [[ $funcstack[1] == _idbg ]]; then
    _idbg_complete "$@"
else
    compdef _idbg_complete idbg idbg-tui
fi
"""
_ACTIONS = {
    "accelerator": "_idbg_accelerator",
    "backend": "_idbg_backend",
    "command": "_idbg_commands",
    "file": "_files",
    "folder": "_files -/",
    "program": "_idbg_program",
    "python": "_idbg_python",
    "session": "_idbg_session",
}


def script(programs: list[Program]) -> str:
    """The whole script; it may be sourced, or be a file of $fpath."""
    lines = [line for program in programs for line in _program(program)]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _program(program: Program) -> Iterator[str]:
    yield ""
    yield from _function("_idbg_of_" + program.name.replace("-", "_"), program.command, top=True)


def _function(name: str, command: Command, *, top: bool) -> Iterator[str]:
    """A function that completes a command, after those of its own commands."""
    for each in command.commands:
        yield from _function(f"{name}_{each.name.replace('-', '_')}", each, top=False)
    if command.commands:
        described = " ".join(_quoted(f"{each.name}:{_escaped(each.help)}") for each in command.commands)
        listed = "_idbg_commands" if top else f"{name}_commands"
        yield f"{listed}() {{"
        yield f"    local -a names=({described})"
        yield "    _describe -t commands command names"
        yield "}"
    yield f"{name}() {{"
    yield "    local curcontext=$curcontext state line"
    yield "    typeset -A opt_args"
    yield f"    _arguments -s {'-C ' if command.commands else ''}\\"
    specs = [_quoted(_flag_spec(each, flag)) for each in command.flags for flag in each.flags]
    if command.commands:
        specs += [_quoted(f"1: :{listed}"), _quoted("*:: :->words")]
    else:
        specs += [_quoted(_place_spec(at, each)) for at, each in enumerate(command.places, 1)]
        specs += [_quoted("*:: :_files")] if not any(each.many for each in command.places) else []
    yield " \\\n".join(f"        {each}" for each in specs)
    if command.commands:
        yield "    [[ $state == words ]] || return"
        yield "    case $words[1] in"
        for each in command.commands:
            yield f"        {each.name}) {name}_{each.name.replace('-', '_')} ;;"
        yield "    esac"
    yield "}"


def _flag_spec(argument: Argument, flag: str) -> str:
    again = "*" if argument.repeats else f"({' '.join(argument.flags)})" if len(argument.flags) > 1 else ""
    words = argument.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    sign = "=" if argument.takes and flag.startswith("--") and not argument.many else ""
    if not argument.takes:
        return f"{again}{flag}[{words}]"
    before = ":*-*" if argument.many else ":" if argument.optional else ""  # many: up to the next flag
    return f"{again}{flag}{sign}[{words}]{before}:{_name(argument)}:{_action(argument)}"


def _place_spec(at: int, argument: Argument) -> str:
    where = "*" if argument.many else f"{at}:" if argument.optional else str(at)
    return f"{where}:{_name(argument)}:{_action(argument)}"


def _name(argument: Argument) -> str:
    return _escaped(argument.name).replace("[", "").replace("]", "")


def _action(argument: Argument) -> str:
    if argument.words:
        return "(" + " ".join(_escaped(word) for word in argument.words) + ")"
    return _ACTIONS.get(argument.kind, " ")


def _escaped(text: str) -> str:
    return text.replace(":", "\\:")


def _quoted(text: str) -> str:
    """For zsh, whatever is in it."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"
