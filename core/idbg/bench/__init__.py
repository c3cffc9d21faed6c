"""Measure what compiling gains: compile times, latency and memory of programs on several backends."""
