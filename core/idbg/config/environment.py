"""By which names in its environment is a child process of ours told what it needs to know?"""

NICENESS = "IDBG_NICE"  # how nice it is to be
PATH_ADDED = "IDBG_PATH_ADDED"  # PYTHONPATH begins with an entry of ours, which the program must not see
SCRATCH = "IDBG_SCRATCH"  # the folder that the host made for what its compilers have not finished, and removes
