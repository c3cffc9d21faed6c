"""In which order are the steps taken? Those that cost little and save much come first."""

from collections.abc import Callable

from idbg.engine.minify.candidate import Candidate
from idbg.engine.minify.shrink.constants import drop_arguments, simplify_numbers
from idbg.engine.minify.shrink.dtypes import simplify_dtypes
from idbg.engine.minify.shrink.extras import drop_extras
from idbg.engine.minify.shrink.shapes import mend_shapes, refine_shapes, shrink_shapes
from idbg.engine.minify.shrink.smallest_failure import SmallestFailure
from idbg.engine.minify.shrink.sweep import sweep_statements
from idbg.engine.minify.shrink.values import simplify_values, write_out


def shrunk(
    candidate: Candidate,
    fails: Callable[[Candidate], bool],
    better: Callable[[Candidate], None],
    tell: Callable[[str], None],
) -> Candidate:
    """The smallest candidate found that still fails; `candidate` does, and is not asked again.

    `fails` runs a script; `better` is told of each smaller one that fails, at once, so that whoever stops this by an
    exception of `fails` has it; `tell`, what is being tried.
    """
    hunt = SmallestFailure(candidate, fails, better, tell)
    tell("leaving out settings, options and marks")
    drop_extras(hunt)
    tell("trying plainer values")
    simplify_values(hunt)
    tell("trying smaller shapes")
    found = shrink_shapes(hunt)
    mend_shapes(hunt)
    tell("trying float32")
    simplify_dtypes(hunt)
    tell("leaving out arguments of calls")
    before = hunt.parts.draft
    drop_arguments(hunt)
    tell("trying plainer numbers")
    simplify_numbers(hunt)
    drop_arguments(hunt)
    if hunt.parts.draft != before:  # what was spelled out may have kept sizes from shrinking
        tell("trying smaller shapes")
        found = shrink_shapes(hunt)
        mend_shapes(hunt)
    tell("looking for the exact sizes at which it begins to fail")
    refine_shapes(hunt, found)
    write_out(hunt)
    tell("asking of each line again whether it is needed")
    sweep_statements(hunt)
    return hunt.best
