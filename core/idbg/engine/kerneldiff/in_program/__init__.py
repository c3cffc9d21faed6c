"""Compare what a program compiles, in the program itself.

`later_calls`: a function, from its second call on; `graph_calls`: each graph of ranks, at its first call; `lockstep`:
in step with the other ranks; `node_values`: what ranks are compared by.
"""
