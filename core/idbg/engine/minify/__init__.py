"""How little of a program still fails as the whole does?

`problem`: what fails, and what is looked for; `cut`: some nodes of a graph as a draft of a script; `oracle`: a draft is
tried in a process of its own; `search`: nodes, then what is left of them; `shrink/`: shapes, values, dtypes, constants,
settings; `user_level/`: modules and statements, where there is no graph; `forks/`: the processes.
"""
