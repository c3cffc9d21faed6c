"""A second process in which torch lives: `client` is the host's side, `main` the child's, `protocol` what they say."""
