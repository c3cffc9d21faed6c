"""Read the wrapper code that Inductor generates, and run it with added calls between its statements."""
