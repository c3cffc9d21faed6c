"""What is asked of the terminal beside painting: its clipboard, the user's editor, suspending?"""
