"""What does compiling buy, per program and backend? Asked, measured in processes of their own, and kept."""
