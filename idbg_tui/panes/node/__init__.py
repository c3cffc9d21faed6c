"""The pane of the selected node."""
