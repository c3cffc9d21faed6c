"""Records of the compiler's decisions: frames, breaks, guards, times, passes, fusion, caches, switches.

`dynamo` has those of Dynamo, `inductor` those of Inductor; `decided` is the fold of their events.
"""
