"""How does the user's program run here, as if it ran by itself?"""
