"""How are bytes, counts, times, signs, files and failures said? In one way, by the CLI, the reports and the screen."""
