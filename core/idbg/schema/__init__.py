"""Records of runs, graphs, comparisons and benchmarks: nothing else is stored or sent between processes."""
