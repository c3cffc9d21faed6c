"""How long does a program take, and what memory, in a process of its own?"""
