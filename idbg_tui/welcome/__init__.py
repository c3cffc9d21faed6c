"""The screen that offers the last sessions and the examples."""
