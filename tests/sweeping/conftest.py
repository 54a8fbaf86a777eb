"""Sweeps in tests keep what they find in folders of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ttexplore.sweeping import kept

GEMM = f"{Path(__file__).parents[2] / 'notebooks' / 'kernels' / 'gemm.py'}::matmul"
SIZES: dict[str, Any] = {"M": 128, "N": 128, "K": 128}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(kept, "default_cache_folder", lambda: folder)
    return folder
