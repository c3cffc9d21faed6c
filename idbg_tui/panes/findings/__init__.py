"""The pane of the violations and what they cost."""
