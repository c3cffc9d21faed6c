"""Observe each launch of a compiled program, and compare the buffers that it writes with its nodes."""
