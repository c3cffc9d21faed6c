"""Find the nodes that the lines of another compiler's text belong to, from what the compiler writes itself."""
