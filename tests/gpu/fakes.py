"""A stand-in for TileLang's environment: a shell script in place of its Python."""

from __future__ import annotations

import json
from pathlib import Path

from ttexplore.gpu.environment import TILELANG_VERSION, GpuEnvironment, write_environment
from ttexplore.record import JsonObject


def fake_environment(folder: Path, script: str, version: str = TILELANG_VERSION) -> GpuEnvironment:
    """An environment in `folder` whose Python runs `script`, in a shell."""
    packages = folder / "packages"
    (packages / "tilelang").mkdir(parents=True)
    (packages / "tilelang" / "__init__.py").touch()
    (packages / f"tilelang-{version}.dist-info").mkdir()
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    made = GpuEnvironment(folder, python, version, packages / "tilelang")
    write_environment(made)
    return made


def answering(folder: Path, answer: JsonObject) -> GpuEnvironment:
    """An environment that gives this answer to every request."""
    (folder / "answer.json").write_text(json.dumps(answer))
    return fake_environment(folder, f"cat {folder / 'answer.json'}")


# The passes of a lowering that fails in its second pass, and what TileLang says of it.
FAILED: JsonObject = {
    "versions": {"tilelang": TILELANG_VERSION, "tvm": "0.25.dev0"},
    "seconds": 0.5,
    "notes": [{"text": "T.annotate_tt_layout is left out", "where": [0, 3]}],
    "listings": [{"text": ["def main():", "    T.copy(A, B)", "    pass"], "places": [[], [[0, 5, 0]], []]}],
    "passes": [
        {"name": "BindTarget", "stage": "LowerAndLegalize", "depth": 0, "before": 0, "after": 0, "seconds": 0.1,
         "summary": "Annotate a function with its target.", "failed": False},
        {"name": "LayoutInference", "stage": "LowerAndLegalize", "depth": 0, "before": 0, "after": 0, "seconds": 0.2,
         "summary": "Infer layouts.", "failed": True},
    ],
    "error": {"kind": "pass", "text": "InternalError: no available layout found", "where": None},
}  # fmt: skip
