"""What the user sets: arguments, settings, options, folders."""
