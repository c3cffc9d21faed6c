"""CompileArguments little of a user's own program fails so, where no graph has the failure?

For a failure in Dynamo, a graph break, a recompile, an exception of the program's own, and a command of the user's.
`wanted`: what is looked for; `script`: a candidate as one file; `recording`, `spelling`, `modules`: the smallest module
of a model that fails alone; `search`: modules, then statements; `trying`: a candidate is written, run and handed over.
To call, where a search in graphs has no graph, or none that fails alone:

    minified = reduced_program(program, target, wanted_of(sought, error, run), place, budget, tell)
"""
