"""Serve sessions over the Model Context Protocol, with small answers.

Each tool of `tools/` runs a command of `idbg` with --json in its own process: the server loads no torch, a run can be
cancelled, only the protocol reaches stdout, and the printed command line works.
"""
