"""What does a browser find in HTML and in SVG? Elements that open and close, by a parser of the standard library."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img", "path", "rect", "circle", "line"}
"""What needs no end: HTML's void elements, and what our drawings close as they open it."""


class Markup(HTMLParser):
    """Elements, attributes and texts; `faults` has what is closed and was not open, or never closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(content)
        self.close()
        self.faults += [f"{tag} is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes what is not open")

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())

    def values(self, name: str) -> list[str]:
        """What each attribute of this name is."""
        return [value for key, value in self.attributes if key == name]

    @property
    def text(self) -> str:
        """All texts, with single blanks."""
        return " ".join(" ".join(self.texts).split())
