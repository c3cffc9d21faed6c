"""Which runs has this session, live and on disk, and who is told of what happens?"""
