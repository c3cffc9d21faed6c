"""Make a failing program as small as possible.

`problem`: what fails, and in which graphs; `candidates`: some nodes of a graph as a script; `oracle`: runs a candidate
in a process of its own; `running`: keeps the smallest that fails; `search`: fewer nodes, then less of each; `shrink/`:
shapes, values, dtypes, constants, settings; `user_level/`: modules and statements, for failures that no graph shows;
`forks/`: the processes.
"""
