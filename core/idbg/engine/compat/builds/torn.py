"""Detect a compiler's file that is incomplete.

A linker creates its output empty, and writes the header last: a killed one leaves a file that is too short, or that
begins with zeros.
"""

import struct
from pathlib import Path

_ELF, _PRECOMPILED = b"\x7fELF", (b"gpch", b"CPCH")
_HEADER = 64  # bytes


def is_torn(path: Path) -> bool:
    """Whether the file exists and is incomplete by its header. Files of other kinds count as complete."""
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
    """The end of an ELF file's section table, which is its last part; 0 without one."""
    order = "<" if header[5] == 1 else ">"
    is_wide = header[4] == 2
    (start,) = struct.unpack_from(f"{order}Q" if is_wide else f"{order}I", header, 40 if is_wide else 32)
    each, count = struct.unpack_from(f"{order}HH", header, 58 if is_wide else 46)
    return int(start + each * count)
