"""Accelerators: the limits of hardware, written as TOML; reading, editing and watching them."""
