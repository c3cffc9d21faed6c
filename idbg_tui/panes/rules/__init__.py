"""Which rules are in force, and how are they edited? The pane of the accelerator."""
