"""Where do the numbers of a compiled program go wrong?"""
