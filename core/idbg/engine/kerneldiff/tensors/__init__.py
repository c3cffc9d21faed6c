"""How far are two tensors apart, and is that too far?"""
