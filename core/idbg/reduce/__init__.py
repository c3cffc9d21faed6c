"""Make a failing thing smaller, whatever it is made of. Searches only: no torch, no processes.

`tries`: each candidate is judged once, within a budget; `ddmin`: items of a list; `nodes`: nodes of a graph;
`statements`: statements of a Python file, with `parts` and `names`; `sources`: edits the file's text.
"""
