"""The terminal front end of idbg: panes over one fold of the session's events."""
