"""Turn the records of torch's trace into events, without torch: those of this process, and those of trace files."""
