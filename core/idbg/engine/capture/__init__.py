"""Capture what a compile does.

`trace` reads torch's trace, `fx` graph modules; `frame` and `links` assemble a frame.
"""
