"""Find the first wrong layer of another compiler, by running its model with layers as extra outputs.

`judged`: values of a graph's nodes against float64; `points`: which value of a model is which node's; `narrowing`: the
outputs of one run are limited; `openvino`, `iree` (and `modules`, its text): one compiler each; `findings`: the records
of what they find; `search`: run the program with all observed.
"""
