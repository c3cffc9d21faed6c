"""How do the compilers that torch starts write, so that what is killed half-way is never met by another?"""
