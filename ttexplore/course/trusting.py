"""The notebooks that Jupyter may trust: ours, as they are published, told by their content.

Jupyter runs scripts and shows drawings in the outputs of a trusted notebook as it opens it. So a notebook in our folder
that has been changed, or that another one put there, is not trusted: only its readers can say so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# The digest of each notebook by its name; `make notebooks` writes it.
DIGESTS = Path(__file__).with_name("notebooks.json")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def published() -> dict[str, str]:
    """The digests of the notebooks by name."""
    return json.loads(DIGESTS.read_text(encoding="utf-8"))


def write_published(folder: Path) -> None:
    """Write the digests of all notebooks in a folder."""
    digests = {file.name: digest(file.read_bytes()) for file in sorted(folder.glob("*.ipynb"))}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def trust(files: Iterable[Path], notary: Any = None) -> list[Path]:
    """Let Jupyter trust those of the files that have the content of a published notebook; returns these.

    What is signed is what was compared: the file is read once. `notary` is nbformat's, by default the user's own.
    """
    from nbformat import reads, sign  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    digests, trusted = set(published().values()), list[Path]()
    for file in files:
        content = file.read_bytes()
        if digest(content) in digests:
            signing: Any = sign.NotebookNotary() if notary is None else notary
            # Jupyter itself makes this folder when it is first started.
            Path(signing.data_dir).mkdir(parents=True, exist_ok=True)
            signing.sign(reads(content.decode(), as_version=4))
            trusted.append(file)
    return trusted


if __name__ == "__main__":
    write_published(Path("notebooks"))
