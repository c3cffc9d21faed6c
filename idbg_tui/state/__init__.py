"""What is shown? A fold of the session's events, and what was selected; no widget."""
