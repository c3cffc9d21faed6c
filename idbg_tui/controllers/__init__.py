"""Handle keys and the messages of panes, one controller a subject."""
