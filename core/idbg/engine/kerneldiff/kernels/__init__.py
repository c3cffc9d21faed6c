"""Observe each launch of a compiled program, and compare the buffers that it writes with its nodes.

`watch`, `observe`: the launches; `interpreter`: a graph's nodes from known values, each by `values`;
`launch_references`: from what earlier launches have written; `verdict`: whether a buffer is wrong.
"""
