"""Write the page of the command line from the parsers, as --help is."""

from collections.abc import Iterable, Iterator

from idbg.cli import exits, manual, parsing, screen, verbs

Row = tuple[str, str]


def commands(_: str) -> str:
    """Every command under its group's title, then `idbg-tui`."""
    lines: list[str] = []
    for title, names in verbs.grouped():
        lines += [f"## {title.capitalize()}", ""]
        for name in names:
            parser = parsing.of_command(name)
            lines += command(parser)
            for each in parsing.under(parser):
                lines += command(each)
    return "\n".join([*lines, "## The screen", "", *command(screen.parser())])


def command(parser: parsing.Parser) -> Iterator[str]:
    """A section of the page: what `idbg help` prints."""
    module = parser.command
    assert module is not None
    yield from (f"### {parser.prog}", "", *_paragraphs(parser.description or ""))
    yield from ("```text", manual.synopsis(parser), "```", "")
    rows = [row for title, entries in manual.arguments(parser) if title != manual.SHARED for row in entries]
    if rows:
        yield from (*_table(("argument", "what it is"), ((f"`{name}`", words) for name, words in rows)), "")
    if parser.prog.count(" ") < 2:
        yield from ("```sh", *(f"{line}  # {what}" for line, what in module.EXAMPLES), "```", "")
        rows_of_exits = _table(("exits with", "when"), exits.of_command(module.EXITS))
        yield from (*rows_of_exits[:2], *(row for row in rows_of_exits[2:] if not _is_everywhere(row)), "")
    if why := getattr(module, "NO_JSON", ""):
        yield from (f"It has no `--json`: {why}.", "")


def statuses(_: str) -> str:
    """The table of exit statuses."""
    rows = ((row.shown, row.name, row.meaning) for row in exits.TABLE.values())
    return "\n".join(_table(("status", "name", "meaning"), rows)) + "\n"


def shared(_: str) -> str:
    """The flags of every command."""
    rows = [row for title, entries in manual.arguments(parsing.top()) for row in entries if title == "flags"]
    return "\n".join(_table(("flag", "what it is"), ((f"`{name}`", words) for name, words in rows))) + "\n"


def environment(_: str) -> str:
    """The files and variables that every command reads."""
    rows = ((f"`{name}`", words) for name, words in manual.ENVIRONMENT)
    return "\n".join(_table(("file or variable", "purpose"), rows)) + "\n"


def _is_everywhere(row: str) -> bool:
    return any(row == _line((exits.TABLE[each].shown, exits.TABLE[each].meaning)) for each in exits.EVERYWHERE)


def _paragraphs(text: str) -> list[str]:
    return [line for each in text.split("\n\n") for line in (_escaped(" ".join(each.split())), "")]


def _table(head: Row | tuple[str, str, str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell if cell.startswith('`') else _escaped(cell) for cell in cells)} |".replace("||", "|")


def _escaped(text: str) -> str:
    """The text with Markdown's special characters escaped."""
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_")
