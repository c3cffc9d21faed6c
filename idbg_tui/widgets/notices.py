"""Messages that any widget may post."""

from dataclasses import dataclass
from typing import Literal

from textual.message import Message


@dataclass
class CopyRequest(Message):
    """Put `text` on the clipboard; `what` names it in the answer ("1 line", "the kernel")."""

    text: str
    what: str


@dataclass
class Flash(Message):
    """A sentence for the footer, shown until the next key."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
