"""How is something that fails made smaller, whatever it is made of? Searches alone: no torch, no processes.

`tries`: each candidate is judged once, within a budget; `flow`: a graph as the search sees it; `nodes`: which nodes
are enough; `ddmin`: which items of a list are enough; `statements`: which statements of a Python file are.
"""
