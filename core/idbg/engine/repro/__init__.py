"""Write a standalone script that reproduces one failure.

A repro is a folder with `repro.py`, and its tensors in `tensors.safetensors` (`files`). `draft`: what a script does;
`script`: its text; `checks`, `value_check`, `check_pieces`: the code that recognizes the failure; `layout`: formatting.
`violation`: a violating node with its rule; `failed_compile`: the graph of a failed compile. `source`: nodes as Python;
`definitions`, `slices`: the program's code; `values`, `node_values`, `recipes`: the arguments.
"""

from idbg.engine.repro.violation import graph_of_node, violation_of, violation_repro

__all__ = ["graph_of_node", "violation_of", "violation_repro"]
