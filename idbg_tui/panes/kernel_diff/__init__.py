"""Where do the numbers go wrong? The pane of a comparison, and its views."""
