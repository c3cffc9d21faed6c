"""Train the sides in lockstep, and find the step at which the test diverges."""
