"""Does this program fit the accelerator, and what would it cost to make it fit?"""
