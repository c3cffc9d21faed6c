"""What did the compiler decide, and why: which frames, breaks, recompiles and guards, and where did the time go?"""
