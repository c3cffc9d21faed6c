"""The pane of a node's code: kernel, wrapper, FX and Python."""
