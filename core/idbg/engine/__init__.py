"""The only rooms that import torch: they load a program, compile it, watch, and write repros."""
