"""Check captured graphs against accelerators, and count the cost of making them fit."""
