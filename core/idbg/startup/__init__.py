"""Capture the Python processes that a program of a session starts: `sitecustomize` runs at the start of each.

The folder stands first on their PYTHONPATH, so it holds no other module.
"""
