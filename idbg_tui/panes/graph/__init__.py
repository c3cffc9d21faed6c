"""What does the graph at this stage hold? The pane of the nodes, and its views."""
