"""Records of the compiler's decisions: frames, breaks, guards, times, passes, fusion, caches, switches.

Frozen records; `decided` is the fold of their events, `events` are these.
"""
