"""What would the program compute if all its floating arithmetic were done in float64?"""
