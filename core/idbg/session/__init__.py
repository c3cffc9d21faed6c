"""Sessions: the runs of a program, live and on disk, and their events."""
