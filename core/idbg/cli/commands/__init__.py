"""What does each command of `idbg` do? One file each, in the names of its commands."""
