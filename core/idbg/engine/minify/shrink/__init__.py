"""How small can what is left become: settings, values, shapes, dtypes and constants, while it fails as it did?

`shrunk` is asked. `parts`: a candidate taken apart, and how large it is; `hunt`: the smallest so far, and steps from
there; `plausible`: what cannot run costs no process. Each step is a module: `extras`, `values` (`fills`: how tensors
are made), `shapes` (`groups`: what changes together; `mending`: what follows from one), `dtypes`, `constants`
(`literals`: what lines of Python hold), and `sweep`, which asks of each line again whether it is needed.
"""

from idbg.engine.minify.shrink.order import shrunk

__all__ = ["shrunk"]
