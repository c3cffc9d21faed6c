"""The pane of torch's settings."""
