"""The panes: each shows the state and posts what the user did."""
