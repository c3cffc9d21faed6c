"""Fill the page around the sections: head, content security policy, navigation, search."""

from collections.abc import Sequence

from markupsafe import Markup

from idbg import __version__
from idbg.format.shown import short
from idbg.render.html.templating import content_hash, fill, static
from idbg.reports import drawings
from idbg.reports.documents import SessionData
from idbg.reports.documents.html import sections

SCRIPTS = ("page.js", "search.js", "graphs.js", "tables.js")
STYLES = ("page.css", "print.css")


def page(session: SessionData) -> Markup:
    """The page of a session as one text."""
    return page_of(session.name, list(sections.of(session)), f"idbg report {short(session.name)} -o report.html")


def page_of(name: str, shown: Sequence[sections.Filled], command: str) -> Markup:
    """A page with these sections as one text; `command` writes it again."""
    style, script = f"{_joined(STYLES)}\n{drawings.style()}", _joined(SCRIPTS)
    return fill(
        "page.html",
        name=name,
        version=__version__,
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        sections=shown,
        command=command,
    )


def _policy(style: str, script: str) -> str:
    """Nothing is fetched, sent or framed; of styles and scripts only our own run, by their hashes."""
    return (
        f"default-src 'none'; script-src {content_hash(script)}; style-src {content_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(static(name) for name in names)
