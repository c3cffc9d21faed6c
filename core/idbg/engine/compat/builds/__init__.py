"""Make the compilers that torch starts write files in one step: a killed one leaves no torn file."""
