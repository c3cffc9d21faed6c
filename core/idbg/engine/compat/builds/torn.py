"""Was this file of a compiler written to its end?

A linker makes its output first, empty, and writes the header last: one that was killed leaves a file that is too short,
or begins with zeros.
"""

import struct
from pathlib import Path

_ELF, _PRECOMPILED = b"\x7fELF", (b"gpch", b"CPCH")
_HEADER = 64  # bytes


def is_torn(path: Path) -> bool:
    """Whether there is such a file, and it is not whole as far as its header tells. Other kinds are taken for whole."""
    if path.suffix not in (".so", ".o", ".gch", ".pch"):
        return False
    try:
        with path.open("rb") as file:
            header, size = file.read(_HEADER), path.stat().st_size
    except OSError:
        return False
    if path.suffix in (".gch", ".pch"):
        return not header.startswith(_PRECOMPILED)
    if not header.startswith(_ELF):
        return header[:4] in (b"", b"\0\0\0\0")
    return len(header) < _HEADER or size < _end_of_sections(header)


def _end_of_sections(header: bytes) -> int:
    """Where an ELF file's table of sections ends, which is the last thing in it; 0 where it has none."""
    order = "<" if header[5] == 1 else ">"
    is_wide = header[4] == 2
    (start,) = struct.unpack_from(f"{order}Q" if is_wide else f"{order}I", header, 40 if is_wide else 32)
    each, count = struct.unpack_from(f"{order}HH", header, 58 if is_wide else 46)
    return int(start + each * count)
