"""What did compiling buy? The pane of the benchmarks, and its views."""
