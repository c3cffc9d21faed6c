"""Format the pages of --help for the terminal's width."""

import argparse
import shutil
import textwrap
from collections.abc import Iterator, Sequence

from idbg.cli import exits, verbs
from idbg.cli.color import paint

ABOUT = (
    "Debug torch.compile from the command line: each command prints a report as text or JSON. idbg-tui is the screen."
)
SHARED = "flags of every command"
WIDEST, LEFT, NARROW = 100, 26, 50
ENVIRONMENT = (
    ("IDBG_BACKEND, ...", "any setting: IDBG_ and its name; idbg config shows the values in force and their origin"),
    ("IDBG_SETTINGS", "the settings file, in place of the one in the user's config folder"),
    ("NO_COLOR, FORCE_COLOR", "no colours, or colours where there is no terminal"),
    ("debug_artifacts/", "where sessions are kept, unless a setting or --output says otherwise"),
)
Section = tuple[str, list[tuple[str, str]]]


def page(parser: argparse.ArgumentParser, command: verbs.CliCommand, *, color: bool) -> str:
    """The page of a command."""
    width = _width()
    lines = [f"{_head('usage', color)} {synopsis(parser)}", ""]
    lines += _paragraphs(parser.description or "", width)
    for title, entries in arguments(parser):
        lines += ["", _head(title, color), *_table(entries, width)]
    if command_examples := getattr(command, "EXAMPLES", ()):
        lines += ["", _head("examples", color), *_examples(command_examples, width)]
    for title, entries in _last(command):
        lines += ["", _head(title, color), *_table(entries, width)]
    return "\n".join([*lines, "", *_see(command, width)]) + "\n"


def top_page(parser: argparse.ArgumentParser, *, color: bool) -> str:
    """The page of `idbg --help`: every command in a line."""
    width = _width()
    lines = [f"{_head('usage', color)} idbg [flags] COMMAND ...", "", *_paragraphs(ABOUT, width)]
    for title, names in verbs.grouped():
        lines += ["", _head(title, color), *_table([(name, verbs.help_of(name)) for name in names], width)]
    for title, entries in arguments(parser):
        if title != "arguments":
            lines += ["", _head(title, color), *_table(entries, width)]
    rows = [(row.shown, row.meaning) for row in exits.TABLE.values()]
    lines += ["", _head("exit status", color), *_table(rows, width)]
    lines += ["", _head("files and environment", color), *_table(ENVIRONMENT, width)]
    lines += [
        "",
        *_paragraphs("idbg help COMMAND prints the page of a command, with examples. To begin: idbg tour", width),
    ]
    return "\n".join(lines) + "\n"


def synopsis(parser: argparse.ArgumentParser) -> str:
    """`idbg run [flags] FILE.py[:NAME] [-- ARGS]`."""
    words = [parser.prog, "[flags]"]
    words += [_with_count(invocation(action), action.nargs) for action in parser._get_positional_actions()]
    if any(action.dest in ("program", "programs") for action in parser._actions):
        words.append("[-- ARGS]")
    return " ".join(words)


def arguments(parser: argparse.ArgumentParser) -> list[Section]:
    """The arguments by group, each with its help."""
    titles = {"positional arguments": "arguments", "options": "flags", "optional arguments": "flags"}
    sections: list[Section] = []
    for group in parser._action_groups:
        entries = [
            (invocation(action), helped(action)) for action in group._group_actions if action.help != argparse.SUPPRESS
        ]
        if entries:
            title = group.title or ""
            sections.append((titles.get(title, title), entries))
    order = {"arguments": 0, "flags": 2, SHARED: 3}
    return sorted(sections, key=lambda section: order.get(section[0], 1))


def as_data(parser: argparse.ArgumentParser) -> dict[str, object]:
    """The page as JSON: every key is always there."""
    command = getattr(parser, "command", None)
    return {
        "command": parser.prog,
        "usage": synopsis(parser),
        "about": " ".join((parser.description or "").split()),
        "arguments": [
            {"group": title, "argument": name, "help": words}
            for title, rows in arguments(parser)
            for name, words in rows
        ],
        "examples": [{"line": line, "does": what} for line, what in getattr(command, "EXAMPLES", ())],
        "exits": [{"status": status, "when": when} for status, when in exits.of_command(getattr(command, "EXITS", {}))],
        "see": list(getattr(command, "SEE", ())),
        "commands": verbs.names() if command is None else [],
    }


def invocation(action: argparse.Action) -> str:
    """`-o, --output FOLDER`; for a positional argument its name."""
    if isinstance(action, argparse._SubParsersAction):
        return f"[{'|'.join(action.choices)} ...]"
    name = named(action)
    if not action.option_strings:
        return name
    if isinstance(action, argparse.BooleanOptionalAction):
        long = next(each for each in action.option_strings if each.startswith("--"))
        return f"--[no-]{long[2:]}"
    flags = ", ".join(action.option_strings)
    if action.nargs == 0:
        return flags
    return f"{flags} {_with_count(name, action.nargs)}"


def _with_count(name: str, nargs: int | str | None) -> str:
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(nargs), name)


def named(action: argparse.Action) -> str:
    """The name of its value in help."""
    name = action.metavar or action.dest.upper()
    return " ".join(name) if isinstance(name, tuple) else name


def helped(action: argparse.Action) -> str:
    """Its help, with choices that the text does not name."""
    words = (action.help or "") % {**vars(action), "prog": "idbg"}
    if isinstance(action, argparse._SubParsersAction):
        return words or "; ".join(f"{each.dest}: {each.help}" for each in action._choices_actions)
    choices = [str(each) for each in action.choices or ()]
    if any(each not in words for each in choices):
        words = f"{words} ({', '.join(choices)})" if words else ", ".join(choices)
    return words


def _last(command: verbs.CliCommand) -> Iterator[Section]:
    yield "exit status", exits.of_command(getattr(command, "EXITS", {}))
    yield "files and environment", [*getattr(command, "FILES", ()), *ENVIRONMENT]


def _see(command: verbs.CliCommand, width: int) -> list[str]:
    see = ", ".join(f"idbg {name}" for name in getattr(command, "SEE", ()))
    return _paragraphs(f"See also: {see}{', ' if see else ''}idbg help", width)


def _examples(examples: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    for line, what in examples:
        yield f"  {line}"  # never wrapped: to be copied
        yield from textwrap.wrap(what, max(width, 20), initial_indent=" " * 6, subsequent_indent=" " * 6)


def _table(entries: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Names on the left, their text on the right; below each other where there is no room."""
    left = min(LEFT, max(len(name) for name, _ in entries) + 4) if width >= NARROW else 4
    for name, words in entries:
        lines = textwrap.wrap(words, max(width - left, 16), break_on_hyphens=False) or [""]
        if len(name) + 4 <= left:
            yield f"  {name:{left - 2}}{lines.pop(0)}".rstrip()
        else:
            yield from textwrap.wrap(
                f"{name}", max(width - 2, 16), initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
            )
        yield from (" " * left + line for line in lines if line)


def _paragraphs(text: str, width: int) -> list[str]:
    """Each paragraph wrapped; an empty line between them."""
    wrapped = [
        textwrap.fill(" ".join(each.split()), max(width, 16), break_on_hyphens=False) for each in text.split("\n\n")
    ]
    return "\n\n".join(wrapped).splitlines()


def _head(title: str, color: bool) -> str:
    return paint(f"{title}:", "bold") if color else f"{title}:"


def _width() -> int:
    columns = shutil.get_terminal_size((80, 24)).columns
    return max(20, min(columns, WIDEST) - 1)
