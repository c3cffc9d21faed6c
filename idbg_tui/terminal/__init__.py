"""The terminal: clipboard, the user's editor, suspending, signals."""
