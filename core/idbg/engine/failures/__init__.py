"""Describe what went wrong in a run, and attribute it to the program, torch or the backend."""
