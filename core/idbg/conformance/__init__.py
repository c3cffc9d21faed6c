"""Compile small programs with a backend, and compare each with eager: which families of PyTorch it covers.

`programs`: the programs, a file a family; `catalogue`: lists them; `runner`: runs each in a process of its own;
`scripts`: a minimal script of each failure.
"""
