"""How is something that fails made smaller, whatever it is made of? Searches alone: no torch, no processes.

`tries`: each candidate is judged once, within a budget; `halves`: the first of many in a row; `ddmin`: which items of
a list are enough; `flow`: a graph as the search sees it; `nodes`: which of its nodes are enough; `statements`: which
statements of a Python file are, and which `parts` of them; `sources`: the file's text without the others.
"""
