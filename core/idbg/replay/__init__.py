"""Run a repro again with another backend, accelerator, options or torch."""
