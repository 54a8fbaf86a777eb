"""Whether a compiled file is all there: a linker's output by its table of sections, a file of the cache by its seal."""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

# The marker after the content of a compiled file; loaders ignore trailing bytes.
_MARK = b"ttexplore"
SEAL_BYTES = len(_MARK) + hashlib.sha256().digest_size


def seal(name: str, content: bytes) -> bytes:
    """What stands behind the content of a compiled file of this name."""
    return _MARK + hashlib.sha256(name.encode() + b"\0" + content).digest()


def is_linked(content: bytes) -> bool:
    """Whether a linker's output is there to its end: of an ELF file, that is the table of its sections."""
    if content[:4] != b"\x7fELF":
        return sys.platform == "darwin" and bool(content)
    wide, order = content[4:5] == b"\x02", "<" if content[5:6] == b"\x01" else ">"
    try:
        (start,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", content, 0x28 if wide else 0x20)
        size, count = struct.unpack_from(f"{order}HH", content, 0x3A if wide else 0x2E)
    except struct.error:
        return False
    return start > 0 and start + size * count <= len(content)


def is_whole(path: Path) -> bool:
    """Whether a compiled file exists and is undamaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return content[-SEAL_BYTES:] == seal(path.name, content[:-SEAL_BYTES])
