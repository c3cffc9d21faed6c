"""The tour for newcomers."""
