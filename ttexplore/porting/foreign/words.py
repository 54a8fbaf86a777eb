"""The rows of the porting table to which the names of GPU languages belong, as ``words.toml`` has them."""

from __future__ import annotations

import tomllib
from pathlib import Path


def by_name(words: dict[str, str]) -> dict[str, str]:
    """The row of each name."""
    return {name: row for row, names in words.items() for name in names.split()}


_WORDS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
# By row: names in triton.language, names of Triton outside of it, of CUDA, and of ThunderKittens.
TRITON, TRITON_AROUND, CUDA, KITTENS = (_WORDS[name] for name in ("triton", "triton_around", "cuda", "kittens"))
