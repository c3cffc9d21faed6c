"""Which scripts has the session that show a failure again?"""
