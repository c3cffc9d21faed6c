"""Which of torch's settings can be flipped, how do they stand, and what did flipping them change?"""
