"""What does a key do?"""
