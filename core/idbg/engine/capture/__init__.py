"""What did this compile do?

`trace` listens to torch, `fx` reads graph modules, `frame` and `links` put a frame together.
"""
