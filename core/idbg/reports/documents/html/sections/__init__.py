"""The sections of the page, in their order.

Each module here is one section: it has `TITLE`, `ANCHOR` (the section's id in the page) and `section(session)`, which
fills a template of `../templates/` and gives its Markup, or None where there is nothing to show.

A template has the filters and functions of `../templating.py`, and `../templates/macros.html` for tables, details,
places and links. Everything is escaped, unless it is Markup. The page's policy lets in no `style="..."` attribute:
use classes, SVG attributes, and the `--idbg-...` colours of `../static/page.css`. An element with an `id` and
`data-find="violation"` is found by the search under that word; `data-words` says by what, if not by its text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from markupsafe import Markup

from idbg.reports.documents import SessionData

ORDER = (
    "summary",
    "ranks",
    "processes",
    "programs",
    "graphs",
    "violations",
    "diff",
    "breaks",
    "guards",
    "decisions",
    "time",
    "kernels",
    "stages",
    "bench",
    "repros",
    "compared",
    "source",
    "environment",
)


class Section(Protocol):
    """What each module here offers."""

    TITLE: str
    ANCHOR: str

    def section(self, session: SessionData) -> Markup | None:
        """What is between its heading and the next section; None where there is nothing to show."""
        ...


@dataclass(frozen=True)
class Filled:
    """A section of this page."""

    title: str
    anchor: str
    body: Markup


def named(name: str) -> Section:
    """The section of this name of ORDER."""
    viewed = import_module(f"{__name__}.viewed")
    return cast(Section, getattr(viewed, name.upper(), None) or import_module(f"{__name__}.{name}"))


def about(section: Section) -> str:
    """What the section shows, in a sentence."""
    return getattr(section, "about", None) or (section.__doc__ or "").splitlines()[0]


def of(session: SessionData) -> Iterator[Filled]:
    """The sections that have something to show."""
    for name in ORDER:
        module = named(name)
        body = module.section(session)
        if body is not None:
            yield Filled(module.TITLE, module.ANCHOR, body)
