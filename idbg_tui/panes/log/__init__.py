"""What happened, in order? The pane of the events."""
