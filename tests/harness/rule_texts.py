"""Rules of one line or two, which the recorded sessions break."""

DENY = '[[rules]]\nkind = "unsupported_ops"\ndeny = ["convolution"]\n'
FALL = '[[rules]]\nkind = "unsupported_ops"\nname = "no relu"\ndeny = ["relu"]\nseverity = "fallback"\n'
PAD = '[[rules]]\nkind = "alignment"\nmultiple = 24\ndims = "last"\nseverity = "pad"\n'
PEAK = '[[rules]]\nkind = "peak_memory"\nmax_bytes = 100\n'
