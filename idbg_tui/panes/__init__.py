"""Which panes are there? One file each; a pane shows the state and posts what the user did."""
