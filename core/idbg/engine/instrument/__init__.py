"""How is Inductor's wrapper changed so that each of its launches can be watched?"""
