"""Compare a compiled program with eager and float64, and find what is wrong."""
