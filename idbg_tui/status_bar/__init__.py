"""Texts of the header and the footer for a state. No widget."""
