"""A device without float64, made of the CPU: device.cpp, and programs on it, in a process of their own."""
