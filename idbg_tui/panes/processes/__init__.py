"""The pane Processes: what compiled beside the main process, and which one is on the screen."""
