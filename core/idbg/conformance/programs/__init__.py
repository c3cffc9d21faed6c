"""The programs of `idbg conform`: a file a family, a function a program.

A program returns a model and its inputs, and for a training step also the loss of its output. Each runs alone:
`idbg diff FILE.py:NAME --backend BACKEND`. QUICK names the programs of `--quick`.
"""
