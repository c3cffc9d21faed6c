"""Find the first stage between the program and its kernels that is wrong, and what made it wrong.

`captured`: the graphs of each stage; `evaluate`: run a graph in float64; `fingerprints`, `first_bad`: its first wrong
node; `own_dtypes`: what float64 does not show; `makers`: the pass or decomposition that made it; `table`: a row
for each stage.
"""
