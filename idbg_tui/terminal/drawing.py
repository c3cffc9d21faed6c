"""The app that ours are derived from: it draws faster than Textual's, where Textual has the private names for that."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from idbg_tui.terminal.changed_output import ChangedOutputApp as DrawnApp
else:
    try:
        from idbg_tui.terminal.changed_output import ChangedOutputApp as DrawnApp
    except (ImportError, AttributeError):  # another version of Textual: its own drawing is slower
        from textual.app import App as DrawnApp

__all__ = ["DrawnApp"]
