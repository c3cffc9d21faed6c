"""Which kernel is to blame for an output that is wrong?"""
