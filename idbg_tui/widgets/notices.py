"""What does a widget say to whoever holds it, whatever is in it?"""

from typing import Literal

from textual.message import Message


class CopyAsked(Message):
    """Put `text` on the clipboard; `what` names it in the answer ("1 line", "the kernel")."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
        self.what = what


class Flash(Message):
    """A sentence for the footer, shown until the next key."""

    def __init__(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        super().__init__()
        self.text = text
        self.level = level
