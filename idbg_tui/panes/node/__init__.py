"""What is known of the selected node? Its pane."""
