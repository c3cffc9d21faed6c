"""The command palette: every action and everything that has a name, one a line."""
