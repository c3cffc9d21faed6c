"""Name the limits that the shell sets for this process and its children."""

import resource

from idbg.format.amounts import size


def memory_limit() -> str:
    """How much memory a process may have, as a clause; "" where the shell sets no limit."""
    limits = [resource.getrlimit(each)[0] for each in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    most = min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)
    return "" if most is None else f"the shell limits each process to {size(most)} of memory (ulimit -v, -d)"
