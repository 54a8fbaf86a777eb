"""Recorded answers of TileLang for kernels of the gallery, so that they can be shown without its environment."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

from ttexplore.errors import BackendError, shown
from ttexplore.record import JsonObject

FOLDER = Path(__file__).with_name("lanes")


def request_digest(request: JsonObject) -> str:
    """What a recording is found by: a digest of the kernel's texts, values and target."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:16]


def recorded(request: JsonObject, folder: Path = FOLDER) -> JsonObject | None:
    """The recorded answer to a request; None if there is none. Raises BackendError if its file is damaged."""
    file = _file(request, folder)
    if file is None:
        return None
    try:
        answer: Any = json.loads(lzma.decompress(file.read_bytes()))
    except (OSError, EOFError, lzma.LZMAError, ValueError, RecursionError, MemoryError) as error:
        raise unreadable(f"the recorded lane {file.name}", error) from error
    return answer


def unreadable(noun: str, error: Exception) -> BackendError:
    return BackendError(
        "B041", f"{noun} cannot be read: {shown(error)}", hint="install ttexplore again, or run ttexplore setup gpu"
    )


def is_recorded(request: JsonObject, folder: Path = FOLDER) -> bool:
    """Whether there is a recorded answer to a request."""
    return _file(request, folder) is not None


def _file(request: JsonObject, folder: Path) -> Path | None:
    return next(iter(folder.glob(f"*.{request_digest(request)}.json.xz")), None)


def write_recording(name: str, request: JsonObject, answer: JsonObject, folder: Path = FOLDER) -> Path:
    """Write an answer, with the name of its kernel and target; recordings with the same name are replaced."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob(f"{name}.*.json.xz"):
        old.unlink()
    file = folder / f"{name}.{request_digest(request)}.json.xz"
    file.write_bytes(lzma.compress(json.dumps(answer, sort_keys=True).encode(), preset=9 | lzma.PRESET_EXTREME))
    return file


def without_times(answer: JsonObject) -> JsonObject:
    """An answer without what differs from run to run."""
    passes = [{key: value for key, value in record.items() if key != "seconds"} for record in answer["passes"]]
    return {**answer, "passes": passes, "seconds": 0}
