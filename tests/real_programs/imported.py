"""A program that is another module's function."""

from linear_module import build as program  # noqa: F401
