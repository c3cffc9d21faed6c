"""Which part of the compiler is guilty? One process of the search compiles with part of torch off."""
