"""Generate the parts of docs/ that come from the code: `python -m tools.pages`.

A page has such a part between `<!-- made: WHAT -->` and `<!-- end -->`: the keys of a pane, what it
is for, the settings. A test checks that nothing would change.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import idbg
from idbg import testing
from idbg.config import settings
from idbg.reports import documents
from idbg.reports.documents.html import sections
from idbg_tui import keymap
from idbg_tui.layout import ORDER
from idbg_tui.panes import loading
from idbg_tui.panes.base import Pane
from idbg_tui.tour import steps
from tools import command_line, compatibility, hooks, key_table, signatures

Hints = tuple[tuple[str, str], ...]

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_PART = re.compile(r"(<!-- made: ([\w /-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def keyed(keys: Iterable[tuple[str, str]]) -> str:
    """A table of keys: "/ n" is two keys."""
    return table(("key", "does"), ((" ".join(f"`{key}`" for key in keys.split()), words) for keys, words in keys))


def panes() -> dict[str, Pane]:
    """Every pane by its name, in the order of their numbers."""
    every = [*loading.first_panes(), *loading.other_panes()]
    for pane in every:
        pane.number = ORDER.index(pane.ID) + 1
    return {pane.ID: pane for pane in sorted(every, key=lambda pane: pane.number)}


def purpose(name: str) -> str:
    """What a pane is for: the first paragraph of its module's docstring."""
    text = import_module(f"idbg_tui.panes.{name}.pane").__doc__ or ""
    paragraph, _, _ = text.partition("\n\n")
    return f"**{' '.join(paragraph.split())}**\n"


def keys_of(name: str) -> str:
    """A pane's own keys, as in the footer, and the keys of its views."""
    if name == "everywhere":
        return _keys_everywhere()
    text = keyed(panes()[name].HINTS)
    views: Mapping[str, Hints] = getattr(import_module(f"idbg_tui.panes.{name}.pane"), "VIEW_HINTS", {})
    rows = [(view, *hint) for view, hints in views.items() if hints != panes()[name].HINTS for hint in hints]
    if not rows:
        return text
    return f"{text}\nIn one view alone:\n\n" + table(
        ("view", "key", "does"),
        ((view, " ".join(f"`{key}`" for key in keys.split()), words) for view, keys, words in rows),
    )


def _keys_everywhere() -> str:
    groups: dict[str, list[tuple[str, str]]] = {"Moving": list(keymap.MOVING)}
    for key in keymap.KEYS:
        groups.setdefault(key.group, []).append((keymap.spelled(key.keys), key.words))
    return "\n".join(f"### {group}\n\n{keyed(keys)}" for group, keys in groups.items())


def list_of_panes(_: str) -> str:
    """All panes: key, page, purpose."""
    rows = [
        (f"`{pane.digit}`", f"[{pane.label}]({name.replace('_', '-')}.md)", purpose(name).strip("*\n"))
        for name, pane in panes().items()
    ]
    return table(("key", "pane", "shows"), rows)


def settings_made(_: str) -> str:
    """Every setting: type, default, environment variable; then their meaning."""
    variables = {name: variable for variable, name in settings.VARIABLES.items()}
    defaults = settings.Settings()
    rows = []
    for name, kind in get_type_hints(settings.Settings).items():
        words = ", ".join(f'"{value}"' for value in get_args(kind)) if get_origin(kind) is Literal else _type(kind)
        variable = variables.get(name, "")
        by = f"`{variable}`" if variable else f"a table: `[{name}]`"
        rows.append((f"`{name}`", words, f"`{getattr(defaults, name)!r}`", by))
    return table(("setting", "what", "default", "environment"), rows) + f"\n{inspect.getdoc(settings.Settings)}\n"


def _type(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def report_formats(_: str) -> str:
    """Every format of a report: file name extensions, and purpose."""
    every = [(name, documents.document(name)) for name in documents.formats()]
    rows = ((f"`{name}`", " ".join(f"`{each}`" for each in made.SUFFIXES), made.ABOUT) for name, made in every)
    return table(("format", "file names", "content"), rows)


def report_sections(_: str) -> str:
    """Every section of the page, in order."""
    shown = map(sections.named, sections.ORDER)
    rows = ((f"**{section.TITLE}**", sections.about(section)) for section in shown)
    return table(("section", "content"), rows)


def tour(_: str) -> str:
    """The steps of the tour, as the strip shows them."""

    def key(found: re.Match[str]) -> str:
        name = found[1]
        return f"`{name[1:] if name.startswith('=') else keymap.spelled(keymap.in_force({})[name]).split()[0]}`"

    return "".join(f"{n}. {re.sub(r'{([^}]+)}', key, step.words)}\n" for n, step in enumerate(steps.STEPS, 1))


def actions(_: str) -> str:
    """Each action by its name in the settings file, with its key."""
    rows = ((f"`{key.name}`", " ".join(f"`{each}`" for each in key.keys.split(",")), key.words) for key in keymap.KEYS)
    return table(("action", "keys", "does"), rows)


def api(_: str) -> str:
    """Every public name: its signature and docstring."""
    parts = [_name("idbg", name, idbg._HOMES[name]) for name in idbg.__all__ if name != "__version__"]
    parts.append("## idbg.\\_\\_version\\_\\_\n\nThe version, as text.\n")
    parts += [_name("idbg.testing", name, testing._HOMES[name]) for name in testing.__all__]
    return "\n".join(parts)


def _name(package: str, name: str, module: str) -> str:
    found = signatures.find(module, name)
    assert found is not None, name
    part = f"## {package}.{name}\n\n```text\n{signatures.signature(found, name)}\n```\n\n{found.doc}\n"
    members = signatures.members(found)
    if not members:
        return part
    rows = ((f"`{written}`", words) for written, words in members)
    return part + "\n" + table(("member", "what it is"), rows)


def compatible(device: str) -> str:
    """What real programs do under idbg on a device, with the date, the machine and what has not been run."""
    found = compatibility.tables(device)
    if not found:
        return "Not run yet.\n"
    return f"{found[0][0]}\n\n" + "\n".join(
        f"### {title}\n\n{table(compatibility.HEAD, rows)}" for _, title, rows in found
    )


MADE: dict[str, Callable[[str], str]] = {
    "commands": command_line.commands,
    "environment": command_line.environment,
    "statuses": command_line.statuses,
    "flags": command_line.shared,
    "question": purpose,
    "keys": keys_of,
    "panes": list_of_panes,
    "settings": settings_made,
    "api": api,
    "actions": actions,
    "tour": tour,
    "formats": report_formats,
    "sections": report_sections,
    "key_table": lambda which: table(*key_table.table(which)),
    "free_letters": lambda _: f"{key_table.free()}\n",
    "compatibility": compatible,
    "hooks": lambda _: table(hooks.HEAD, hooks.rows()),
}


def remade(text: str) -> str:
    """The page with up-to-date generated parts."""

    def part(found: re.Match[str]) -> str:
        what, _, of = found[2].partition(" ")
        return f"{found[1]}\n{MADE[what](of)}\n{found[3]}"

    return _PART.sub(part, text)


def main(argv: Sequence[str] | None = None) -> int:
    """Write all generated parts, and print the changed pages. With `--check` only return 1 for a change."""
    parser = argparse.ArgumentParser(prog="python -m tools.pages", description="Write the generated parts of docs/.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page would change")
    args = parser.parse_args(argv)
    changed = 0
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = remade(old)
        if new != old:
            changed += 1
            print(page.relative_to(ROOT))
            if not args.check:
                page.write_text(new, encoding="utf-8")
    return int(args.check and changed > 0)


if __name__ == "__main__":
    sys.exit(main())
