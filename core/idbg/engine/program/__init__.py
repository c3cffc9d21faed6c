"""Run the user's program in this process as if it ran by itself."""
