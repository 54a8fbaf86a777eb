"""Kernels as text: written to a file, loaded and traced."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ttexplore.language.load import load_kernel

HEADER = "import tilelang\nimport tilelang.language as T\n"
# The first line of a kernel text in its file.
FIRST_LINE = 3

TraceText = Callable[..., Any]


@pytest.fixture
def kernel_file(tmp_path: Path) -> Callable[..., str]:
    """Writes a kernel text below the usual imports and gives its path."""

    def write(text: str, name: str = "kernels.py", header: str = HEADER) -> str:
        path = tmp_path / name
        path.write_text(header + textwrap.dedent(text))
        return str(path)

    return write


@pytest.fixture
def trace_text(kernel_file: Callable[..., str]) -> TraceText:
    """Traces the kernel `name` of a text."""

    def trace(text: str, name: str = "kernel", **arguments: Any) -> Any:
        return load_kernel(f"{kernel_file(text)}::{name}", **arguments)

    return trace


@pytest.fixture
def trace_body(trace_text: TraceText) -> TraceText:
    """Traces the statements inside T.Kernel of a kernel over A, B: (128, 128) and C: (64, 64), all float32."""

    def trace(body: str, before: str = "", scope: str = "T.Kernel(4, 2) as (bx, by)") -> Any:
        return trace_text(body_text(body, before, scope))

    return trace


def body_text(body: str, before: str = "", scope: str = "T.Kernel(4, 2) as (bx, by)") -> str:
    return (
        textwrap.dedent(before)
        + "@T.prim_func\n"
        + 'def kernel(A: T.Tensor((128, 128)), B: T.Tensor((128, 128)), C: T.Tensor((64, 64), "float32")):\n'
        + f"    with {scope}:\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n") or "pass", " " * 8)
        + "\n"
    )
