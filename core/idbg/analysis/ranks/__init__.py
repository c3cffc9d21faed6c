"""Compare the ranks of a distributed job: `digest` a rank, `compare` digests, find out who `waits` for whom.

`nodes` finds the first node in which two graphs differ, for which both runs are needed whole.
"""
