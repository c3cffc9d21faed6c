"""What is a newcomer shown, in which order, and how does the program know that it was seen?"""
