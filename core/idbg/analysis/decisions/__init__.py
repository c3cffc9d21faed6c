"""What follows from the compiler's decisions, from records alone? One kind of decision a module."""
