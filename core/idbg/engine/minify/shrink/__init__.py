"""Shrink what is left of a candidate: settings, values, shapes, dtypes and constants, while it fails in the same way.

`parts`: a candidate taken apart, and its size; `smallest_failure`: the smallest so far, and steps from there;
`dry_run`: rejects what cannot run, without a process. Each step is a module: `extras`, `values` (`fills`: how tensors
are made), `shapes` (`groups`: sizes that change together), `dtypes`, `constants` (`literals`: edits lines of Python),
and `sweep`, which tries again to leave out each line.
"""

from collections.abc import Callable

from idbg.engine.minify.shrink.constants import drop_arguments, simplify_numbers
from idbg.engine.minify.shrink.dtypes import simplify_dtypes
from idbg.engine.minify.shrink.extras import drop_extras
from idbg.engine.minify.shrink.shapes import refine_shapes, shrink_shapes, shrink_single_sizes
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure
from idbg.engine.minify.shrink.sweep import sweep_statements
from idbg.engine.minify.shrink.values import simplify_values, write_out
from idbg.engine.repro.draft import Candidate


def shrunk(
    candidate: Candidate,
    fails: Callable[[Candidate], bool],
    better: Callable[[Candidate], None],
    tell: Callable[[str], None],
) -> Candidate:
    """The smallest candidate found that still fails; `candidate` is known to fail and is not tried again.

    `fails` runs a script; `better` gets each smaller failing candidate at once, so that it is known if an exception of
    `fails` stops this; `tell` gets what is being tried.
    """
    smallest = SmallestFailure(candidate, fails, better, tell)
    tell("leaving out settings, options and marks")
    drop_extras(smallest)
    tell("trying plainer values")
    simplify_values(smallest)
    tell("trying smaller shapes")
    found = shrink_shapes(smallest)
    shrink_single_sizes(smallest)
    tell("trying float32")
    simplify_dtypes(smallest)
    tell("leaving out arguments of calls")
    before = smallest.parts.draft
    drop_arguments(smallest)
    tell("trying plainer numbers")
    simplify_numbers(smallest)
    drop_arguments(smallest)
    if smallest.parts.draft != before:  # what was spelled out may have kept sizes from shrinking
        tell("trying smaller shapes")
        found = shrink_shapes(smallest)
        shrink_single_sizes(smallest)
    tell("looking for the exact sizes at which it begins to fail")
    refine_shapes(smallest, found)
    write_out(smallest)
    tell("asking of each line again whether it is needed")
    sweep_statements(smallest)
    return smallest.best
