"""What do the first and the last line of the screen say of a state? Words and styles, no widget."""
