"""Bisect a failure: to a part of the compiler, to settings, or to a commit. Each try is a process."""
