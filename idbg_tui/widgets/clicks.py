"""Text that does something when it is clicked."""

from textual.content import Content
from textual.style import Style


def clickable(text: str, style: str, action: str) -> Content:
    """A text in a style; a click on it is the action."""
    content = Content(text)
    if style:
        content = content.stylize(style)
    return content.stylize(Style.from_meta({"@click": action}))


def choice(name: str, action: str, *, shown: bool) -> Content:
    """The name of one of several views: in brackets where it is the shown one; a click on it is the action."""
    return clickable(f"[{name}]" if shown else f" {name} ", "bold $primary" if shown else "not bold dim", action)
