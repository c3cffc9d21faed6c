"""What went wrong in a run, and whose is it: the program's, torch's, or the backend's?"""
