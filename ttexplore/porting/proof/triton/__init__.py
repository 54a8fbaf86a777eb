"""Triton kernels, run from their text over NumPy."""

from __future__ import annotations

from ttexplore.porting.proof.triton.interpreter import TritonRunner, triton_runner

__all__ = ["TritonRunner", "triton_runner"]
