"""Whose is the error of one launch: the compiler's, what came before, the precision, the graph?"""
