"""What completes our command lines in bash, 3.2 and later, with or without the package bash-completion?"""

from collections.abc import Iterator

from idbg.cli.completions.model import Argument, Command, Program

_HEAD = """\
# bash completion of idbg and idbg-tui; made by: idbg completion bash
# use it now:     source <(idbg completion bash)
# and always:     idbg completion bash > ~/.local/share/bash-completion/completions/idbg

"""
_TAIL = """\
# what a value of this kind may be -> COMPREPLY
_idbg_offer() {
    local IFS=$'\\n' cur=$2
    case $1 in
        file) COMPREPLY=($(compgen -f -- "$cur")); _idbg_files ;;
        folder) COMPREPLY=($(compgen -d -- "$cur")); _idbg_files ;;
        python) COMPREPLY=($(compgen -d -- "$cur") $(compgen -f -X '!*.py' -- "$cur")); _idbg_files ;;
        session) COMPREPLY=($(compgen -W "$(idbg completion --words session 2>/dev/null)" -- "$cur") \\
            $(compgen -d -- "$cur")); _idbg_files ;;
        program) COMPREPLY=($(compgen -W "$(idbg completion --words session 2>/dev/null)" -- "$cur") \\
            $(compgen -d -- "$cur") $(compgen -f -X '!*.py' -- "$cur")); _idbg_files ;;
        accelerator) COMPREPLY=($(compgen -W "$(idbg completion --words accelerator 2>/dev/null)" -- "$cur") \\
            $(compgen -f -X '!*.toml' -- "$cur")) ;;
        backend) COMPREPLY=($(compgen -W "$(idbg completion --words backend 2>/dev/null)" -- "$cur")) ;;
        command) COMPREPLY=($(compgen -W "${_idbg_commands// /$'\\n'}" -- "$cur")) ;;
        =*) local words=${1#=}; COMPREPLY=($(compgen -W "${words// /$'\\n'}" -- "$cur")) ;;
    esac
}

_idbg_files() {
    type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
}

# words without those of bash that "=" and ":" end: "--a=b" is one, and so is "FILE.py:NAME"
_idbg() {
    local -a words=()
    local at=0 word joined=0 cur flag command= kind spec place=0 taking=
    COMPREPLY=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((at > 0)) && [[ $word == [=:]* || $joined == 1 ]] && ((${#words[@]})); then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        [[ $word == *[=:] ]] && joined=1 || joined=0
    done
    local last=$((${#words[@]} - 1))
    cur=${words[last]}
    command=$(basename -- "${words[0]}")
    [[ $command == idbg-tui ]] || command=idbg
    for ((at = 1; at < last; at++)); do
        word=${words[at]}
        if [[ $word == -- ]]; then
            _idbg_offer file "$cur"
            return
        elif [[ $word == --*=* ]]; then
            taking=
        elif [[ $word == -?* ]]; then
            _idbg_value "$command $word"
            taking=$spec
        elif [[ $taking == 1* ]]; then
            taking=
        elif [[ $taking == +* ]]; then
            :
        elif [[ $taking == \\?* ]]; then
            taking=
        else
            if _idbg_is_command "$command $word"; then
                command="$command $word"
                place=0
            else
                place=$((place + 1))
            fi
        fi
    done
    if [[ $cur == --*=* ]]; then
        flag=${cur%%=*}
        _idbg_value "$command $flag"
        _idbg_offer "${spec:1}" "${cur#*=}"
        # readline replaces what stands after "=" alone, where that ends a word
        [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$flag=}")
        return
    fi
    if [[ $taking == 1* ]]; then
        _idbg_offer "${taking:1}" "$cur"
    elif [[ $cur == -* ]]; then
        local IFS=$'\\n'
        COMPREPLY=($(compgen -W "$(_idbg_flags "$command")" -- "$cur"))
    elif [[ -n $taking && -n ${taking:1} ]]; then
        _idbg_offer "${taking:1}" "$cur"
    else
        _idbg_place "$command" "$place"
        _idbg_offer "$kind" "$cur"
    fi
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        local head=${cur%"${cur##*:}"}
        COMPREPLY=("${COMPREPLY[@]#"$head"}")
    fi
}

complete -F _idbg idbg idbg-tui
"""


def script(programs: list[Program]) -> str:
    """The whole script."""
    commands = [(program.name, program.command) for program in programs]
    every = [pair for name, command in commands for pair in _under(name, command)]
    names = " ".join(each.name for each in programs[0].command.commands)
    lines = [f"_idbg_commands={_quoted(names)}", ""]
    lines += ["# a command's flags, a line each", "_idbg_flags() {", "    case $1 in"]
    lines += [f"        {_quoted(name)}) printf '%s\\n' {' '.join(_flags(command))} ;;" for name, command in every]
    lines += ["    esac", "}", "", "# what a flag takes -> spec: 1, + (many) or ? (or none), and its kind"]
    lines += ["_idbg_value() {", "    spec=", "    case $1 in"]
    lines += [line for name, command in every for line in _values(name, command)]
    lines += ["    esac", "}", "", "# what stands at a place -> kind", "_idbg_place() {", "    kind="]
    lines += ["    case $1:$2 in", *(line for name, command in every for line in _places(name, command))]
    lines += ["    esac", "}", "", "_idbg_is_command() {", "    case $1 in"]
    inner = [name for name, _ in every if " " in name]
    lines += [f"        {'|'.join(_quoted(name) for name in inner)}) return 0 ;;"] if inner else []
    lines += ["    esac", "    return 1", "}", ""]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _under(name: str, command: Command) -> Iterator[tuple[str, Command]]:
    yield name, command
    for each in command.commands:
        yield from _under(f"{name} {each.name}", each)


def _flags(command: Command) -> list[str]:
    return [flag for each in command.flags for flag in each.flags]


def _values(name: str, command: Command) -> Iterator[str]:
    for each in command.flags:
        if each.takes:
            patterns = "|".join(_quoted(f"{name} {flag}") for flag in each.flags)
            sign = "+" if each.many else "?" if each.optional else "1"
            yield f"        {patterns}) spec={_quoted(sign + _kind(each))} ;;"


def _places(name: str, command: Command) -> Iterator[str]:
    if command.commands:
        names = " ".join(each.name for each in command.commands)
        yield f"        {_quoted(name)}:0) kind={_quoted('=' + names)} ;;"
    for at, each in enumerate(command.places):
        yield f"        {_quoted(name)}:{'*' if each.many else at}) kind={_quoted(_kind(each))} ;;"


def _kind(argument: Argument) -> str:
    return "=" + " ".join(argument.words) if argument.words else argument.kind


def _quoted(text: str) -> str:
    """For bash, whatever is in it."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"
