"""Reduce the source of a program whose failure no single graph shows.

For failures in Dynamo, graph breaks, recompiles, exceptions of the program and commands of the user. `failure_pattern`:
how the failure is recognized; `script`: a candidate as one file; `module_calls`, `expressions`, `modules`: the smallest
module of a model that fails alone; `callbacks`: code that the compiler calls; `search`: modules, then statements;
`script_runs`: writes and runs candidates.
"""
