"""The pane of the events."""
