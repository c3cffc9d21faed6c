"""What can be opened? The last sessions and the examples, before there is a session on the screen."""
