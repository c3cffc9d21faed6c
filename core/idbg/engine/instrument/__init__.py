"""How is a wrapper of Inductor's read, and how does it run with calls of ours between its statements?"""
