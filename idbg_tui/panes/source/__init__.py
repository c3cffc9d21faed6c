"""Which code came out for the selected node? The pane of kernel, wrapper, FX and Python."""
