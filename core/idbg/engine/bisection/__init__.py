"""Compile with a part of torch's compiler switched off, in one process of a bisection."""
