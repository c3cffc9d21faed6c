"""The pane of a graph's nodes, and its views."""
