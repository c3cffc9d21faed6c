"""Run a script many times in processes of its own, each forked from one that has torch imported.

`client`: runs scripts (`Forks.run`, `verified`); `outcome`: the result of a try; `connection`, `attempt`: the client's
side of the server and of a try; `processes`: the process tree, from /proc. In the other processes: `server` forks;
`become` makes a process behave like `python FILE`.
"""
