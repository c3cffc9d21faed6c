"""Run a program with all of its floating arithmetic in float64."""
