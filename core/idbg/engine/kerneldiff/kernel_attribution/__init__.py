"""Attribute the error of one launch: to its kernel's compiler, to what ran before it, to the graph, or to the
precision.

`search`: run the program again and decide; `plan`: the launch, its buffers and its nodes; `recorder`: record it in a
run; `replay`: call it alone; `isolated`: compare those calls with its nodes; `verdict`: the cause in words; `script`: a
standalone script of the replay.
"""
