"""How is a run told to somebody who did not watch it?"""
