"""What did the user set: arguments, settings, options, folders?"""
