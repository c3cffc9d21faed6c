"""The pane of the accelerator's rules, and its views."""
