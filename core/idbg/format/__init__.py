"""Write bytes, counts, times, signs, files and failures the same way for the CLI, the reports and the screen."""
