"""Find the first graph that another compiler computes wrong, and its first wrong layer or node.

`compilers`: those whose graphs can be searched, and the run in which they are observed; `checkpoints`: the search;
`openvino`, `iree` (and `modules`, its text), `any_backend`: one compiler each; `judged`: values of a graph's nodes
against float64; `points`: which value of a model is which node's; `findings`: the records of what is found.
"""
