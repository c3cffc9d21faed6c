"""At which stage on the way from the program to its kernels do numbers go wrong, and what made that?

`captured`: the graphs of each stage; `evaluate`: what a graph computes in float64; `fingerprints`, `first_bad`: its
first wrong node; `makers`: which pass or decomposition made that; `table`: how it all adds up.
"""
