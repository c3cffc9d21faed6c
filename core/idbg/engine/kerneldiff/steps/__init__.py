"""At which step of a training do two sides part, and where?"""
