"""Which widgets do the panes stand on? They know lines and code, and nothing of a session."""
