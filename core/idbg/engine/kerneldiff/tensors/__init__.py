"""Measure how far two tensors are apart, and decide whether that is too far."""
