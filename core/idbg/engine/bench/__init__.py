"""Measure a program's latency, memory and kernel times in a process of its own."""
