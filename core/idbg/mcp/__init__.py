"""What may another program ask of idbg over the Model Context Protocol, and how small is each answer?

Each tool of `tools/` is a command of `idbg` with --json, run in a process of its own: so the server's process loads no
torch, a run can be cancelled, nothing but the protocol reaches stdout, and the command line that is told works.
"""
