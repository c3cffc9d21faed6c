"""What did the compiler choose, and why, as data: frames, breaks, guards, times, passes, fusion, caches, switches.

Frozen records; `decided` is the fold of their events, `events` are these.
"""
