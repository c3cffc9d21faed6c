"""The pane of a comparison: where the numbers go wrong."""
