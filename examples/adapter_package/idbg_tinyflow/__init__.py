"""Tinyflow, an accelerator that does not exist. Import nothing here: idbg reads `capabilities` without torch."""
