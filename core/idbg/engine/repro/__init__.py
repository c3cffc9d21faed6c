"""How is one failure shown again, in a script that stands alone?

A repro is a folder with `repro.py` and the values that it needs in `tensors.safetensors`. `draft`: what a script does;
`script`: its text; `checks`, `check_of_values`, `check_of_processes`: what tells that it fails; `layout`: its looks.
`violation`: the violating node alone, with its rule; `failing`: which graph did not compile, and how. `source`: nodes
as Python; `definitions`, `slices`: what of the program comes along; `values`, `recorded`,
`recipes`: what the arguments are.
"""

from idbg.engine.repro.violation import graph_of_node, violation_of, violation_repro

__all__ = ["graph_of_node", "violation_of", "violation_repro"]
