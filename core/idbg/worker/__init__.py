"""The process in which torch runs: `client` is the host's side, `main` the child's, `protocol` their messages."""
