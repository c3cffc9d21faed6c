"""What is known of runs, graphs, comparisons and benchmarks, as records? Nothing else is stored or sent."""
