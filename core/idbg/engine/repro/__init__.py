"""How is one failure shown again, in a script that stands alone?

A repro is a folder with `repro.py` and the values it needs in `tensors.safetensors`. `violation`: the violating node
alone, with its inputs as arguments, and the rule in `rules.toml`. `failing`: the Dynamo graph that did not compile, as
plain torch. `source`: nodes as Python; `values`: what the arguments are; `script`: the text; `folder`: the files.
"""

from idbg.engine.repro.failing import compile_repro
from idbg.engine.repro.violation import graph_of_node, violation_of, violation_repro

__all__ = ["compile_repro", "graph_of_node", "violation_of", "violation_repro"]
