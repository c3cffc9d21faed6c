"""What can be learnt about a run from its records alone, with no torch?"""
