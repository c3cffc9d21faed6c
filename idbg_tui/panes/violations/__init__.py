"""What breaks the rules, and what does it cost? The pane of the violations."""
