"""What does each side of a comparison give: eager, compiled, float64?"""
