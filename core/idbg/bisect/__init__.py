"""Who is guilty: which part of the compiler, which settings, which commit? Searches whose tries are processes."""
