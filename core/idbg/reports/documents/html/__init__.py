"""Write a session as one HTML page that opens anywhere, without a network."""

from idbg.reports.documents import SessionData

ABOUT = "one page for a browser, with everything in it"
SUFFIXES = (".html", ".htm")


def render(session: SessionData) -> bytes:
    """The whole page, UTF-8: the sections, our CSS and JavaScript, and nothing that is fetched."""
    from idbg.reports.documents.html.page import page

    return page(session).encode()
