"""What earlier sweeps found, in the cache folder: one file for each kernel, with a line for each point.

A file is named by a hash of all sources (:class:`~ttexplore.sweeping.shipping.Shipped`), a line by a hash of the point.
Lines are only appended: a later one of the same point replaces an earlier one, and one that was cut off is skipped.

Results are kept, and refusals of the kernel; not what the next sweep may find otherwise, as what a full memory, a deep
caller, a worker's end or a fault of ttexplore itself did.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ttexplore.backends.cache import default_cache_folder, make_private, refuse_foreign, unusable
from ttexplore.errors import KernelError, ResourceError, Unsupported, UsageError
from ttexplore.record import ErrorRecord, from_json, to_json
from ttexplore.sweeping.evaluate import PointResult
from ttexplore.sweeping.space import Point

_LASTING = frozenset(kind.__name__ for kind in (KernelError, ResourceError, Unsupported, UsageError))
# Of these kinds: memory, the depth of the caller, and what the kernel's own Python raises, of files for example.
_OF_THE_MOMENT = frozenset({"TTX-R010", "TTX-R011", "TTX-K011"})


def _is_lasting(error: ErrorRecord | None) -> bool:
    """Whether a point of the same sources ends in the same way at another time."""
    return error is None or (error.kind in _LASTING and error.code not in _OF_THE_MOMENT)


@dataclass(frozen=True)
class SweepFile:
    """The file of one kernel; without a `path` nothing is kept."""

    path: Path | None

    @classmethod
    def of(cls, digest: str, folder: Path | None = None) -> SweepFile:
        """The file for these sources in the cache folder. Raises BackendError if it cannot be written, or others can
        write there."""
        if not digest:
            return cls(None)
        cache = default_cache_folder() if folder is None else folder
        sweeps = cache / "sweeps"
        path = sweeps / f"{digest[:32]}.jsonl"
        for directory in (cache, sweeps):
            refuse_foreign(directory)
        try:
            make_private(sweeps)
            path.touch()
        except OSError as error:
            raise unusable(sweeps, error.strerror or str(error)) from error
        return cls(path)

    def found(self, keys: Iterable[str | None]) -> list[PointResult | None]:
        """The outcome of each point, by :func:`keys_of`; None for those that are not kept."""
        by_key: dict[str, object] = {}
        for line in [] if self.path is None else self.path.read_bytes().splitlines():
            try:
                key, outcome = json.loads(line)
                by_key[key] = outcome
            except (ValueError, TypeError):
                continue
        return [_read(by_key.get(key or "")) for key in keys]

    def keep(self, keys: Iterable[str | None], outcomes: Iterable[PointResult]) -> None:
        """Add the outcomes of the points with these keys, as far as they last."""
        lines = [
            json.dumps([key, to_json(outcome)]) + "\n"
            for key, outcome in zip(keys, outcomes, strict=True)
            if key is not None and _is_lasting(outcome.error)
        ]
        if self.path is None or not lines:
            return
        try:
            # One write, so that sweeps side by side do not mix their lines. It starts with a line end, because another
            # one may have been cut off.
            with self.path.open("ab", buffering=0) as file:
                file.write(("\n" + "".join(lines)).encode())
        except OSError as error:
            raise unusable(self.path.parent, error.strerror or str(error)) from error


def keys_of(points: Iterable[Point]) -> list[str | None]:
    """A text for each point that is the same for the same lowering of a kernel; None if a value has no text."""
    # There are few targets, and each has hundreds of numbers.
    targets: dict[int, str] = {}
    keys: list[str | None] = []
    for point in points:
        target = targets.setdefault(id(point.target), "") or json.dumps(point.target.to_json())
        targets[id(point.target)] = target
        try:
            text = json.dumps([_plain(point.arguments), _plain(point.options), target])
        except (TypeError, RecursionError):  # a list may be its own element
            keys.append(None)
        else:
            keys.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return keys


def _plain(value: object) -> object:
    """A value for JSON, with its kind where JSON would not tell it apart. Raises TypeError for others."""
    match value:
        case str() if type(value) is not str:
            return [type(value).__name__, str(value)]
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            pairs = cast(Mapping[object, object], value).items()
            return ["dict", sorted(([_plain(key), _plain(inner)] for key, inner in pairs), key=repr)]
        case list() | tuple():
            items = cast(Sequence[object], value)
            return [type(items).__name__, *map(_plain, items)]
        case _ if hasattr(value, "dtype") and hasattr(value, "tolist"):
            array = cast(Any, value)
            return [type(value).__name__, str(array.dtype), _plain(array.tolist())]
        case _:
            raise TypeError


def _read(data: object) -> PointResult | None:
    if data is None:
        return None
    try:
        return from_json(PointResult, data)
    except (TypeError, ValueError, KeyError):
        return None
