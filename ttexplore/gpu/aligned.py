"""The passes of both pipelines, aligned by what they do: TileLang's for a GPU, and ours."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Purpose:
    """What passes do: names of TileLang's passes, letters of our steps, and a sentence on both."""

    name: str
    gpu: tuple[str, ...]
    ours: tuple[str, ...]
    sentence: str


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("aligned.toml").read_text(encoding="utf-8"))


@functools.cache
def purposes() -> tuple[Purpose, ...]:
    """What passes do, in the order of the pipelines. Every pass of TileLang is in one row."""
    return tuple(
        Purpose(row["name"], tuple(row["gpu"]), tuple(row["ours"]), " ".join(row["sentence"].split()))
        for row in _table()["purposes"]
    )


def former_passes() -> dict[str, str]:
    """Passes of earlier versions of TileLang, and those that do the same now; empty for those that are gone."""
    return dict(_table()["former"])
