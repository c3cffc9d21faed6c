"""What the screen shows: a fold of the session's events and of the user's choices. No widget."""
