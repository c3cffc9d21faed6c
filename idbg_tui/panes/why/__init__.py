"""The pane of the compiler's decisions: frames, breaks, recompiles, guards, times, fusion, caches."""
