"""How is it said on the screen: amounts, failures, marks, names of files?"""
