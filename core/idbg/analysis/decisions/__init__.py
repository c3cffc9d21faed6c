"""Derive facts from the compiler's decisions: one kind of decision a module."""
