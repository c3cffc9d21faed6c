"""Compare each graph that a program compiles, in the program itself.

`graph_calls`: at its first call; `lockstep`: in step with the other ranks; `node_values`: what ranks are compared by.
"""
