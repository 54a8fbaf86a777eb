"""What is computed and printed does not depend on the processor: not on the order in which a BLAS adds, and not on the
vector instructions with which NumPy computes functions."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ttexplore.ops import wide

REPOSITORY = Path(__file__).parents[1]

# The kernels of OpenBLAS by the instruction set that they need, as Linux calls it; the oldest is run by a NumPy without
# vector instructions of its own.
KERNELS = {"Nehalem": "sse4_2", "Haswell": "avx2", "SkylakeX": "avx512vl"}


@pytest.mark.slow
def test_figures_are_the_same_on_every_processor() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    flags = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set[str]()
    kernels = [name for name, flag in KERNELS.items() if flag in flags] or ["default"]
    printed = {
        (kernel, threads): subprocess.Popen(
            [sys.executable, "-m", "tests.printed_figures"], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
            env={
                **{name: value for name, value in os.environ.items() if name != "OPENBLAS_L2_SIZE"},
                "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads,
                "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL" if kernel == "Nehalem" else "",
            },
        )
        for kernel, threads in itertools.product(kernels, ("1", "2"))
    }  # fmt: skip
    texts = {process.communicate()[0] for process in printed.values()}
    assert all(process.returncode == 0 for process in printed.values())
    (text,) = texts
    assert text.count("passed=True") == 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_have_the_dtype_of_their_operands(dtype: str) -> None:
    left, right = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(dtype)
    expected = (left.astype(np.longdouble) @ right.astype(np.longdouble)).astype(dtype)
    found = wide.product(left, right)
    assert found.dtype == dtype
    assert np.array_equal(found, expected) if dtype == "float32" else np.allclose(found, expected)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "arctan"])
def test_functions_are_rounded_once(name: str) -> None:
    values = np.random.default_rng(1).uniform(0.01, 8, 4096).astype(np.float32)
    found = getattr(wide, name)(values)
    assert found.dtype == np.float32
    assert np.array_equal(found, getattr(np, name)(values.astype(np.longdouble)).astype(np.float32))
    assert getattr(wide, name)(np.float32(2)).dtype == np.float32
    assert np.array_equal(getattr(wide, name)(values.astype(np.float64)), getattr(np, name)(values.astype(np.float64)))
