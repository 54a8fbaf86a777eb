# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Updates of a tensor at elements that an index tensor chooses in each turn of a T.Parallel, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx

_BODIES = {
    "rows": """
        for i, j in T.Parallel(32, 64):
            T.atomic_add(C[n[i], j], a[i, j])""",
    "names and a condition": """
        for i, j in T.Parallel(32, 64):
            pos = n[i]
            scaled = a[i, j] * 2
            if (pos > 2) & (pos <= 40):
                T.atomic_add(C[pos - 1, j], scaled)""",
    "a condition on both axes": """
        for i, j in T.Parallel(32, 64):
            if i + j < 40:
                T.atomic_add(C[n[i], j], a[i, j])""",
    "the second axis first": """
        for j, i in T.Parallel(64, 32):
            T.atomic_add(C[N[bx, i], j], a[i, j])""",
    "neighbours": """
        for i, j in T.Parallel(32, 16):
            T.atomic_addx4(C[n[i], j * 4], a[i, j * 4])""",
    "maxima": """
        for i, j in T.Parallel(32, 64):
            T.atomic_max(C[n[i], j], a[i, j])""",
    "elements": """
        for i in T.Parallel(32):
            T.atomic_add(C[n[i], 3], a[i, 5])""",
}


def _wanted(name: str, a: Any, n: Any, c: Any) -> Any:
    c = c.copy()
    for row in range(128):
        at, added = n.flat[row], a[row]
        match name:
            case "names and a condition":
                if 2 < at <= 40:
                    c[at - 1] += added * 2
            case "a condition on both axes":
                first = max(40 - row % 32, 0)
                c[at, :first] += added[:first]
            case "maxima":
                c[at] = np.maximum(c[at], added)
            case "elements":
                c[at, 3] += added[5]
            case _:
                c[at] += added
    return c


@pytest.mark.parametrize("body", _BODIES)
def test_several_turns_and_blocks_update_the_same_rows(tmp_path: Path, body: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(f"""import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((128, 64), "float32"), N: T.Tensor((4, 32), "int32"), C: T.Tensor((50, 64), "float32")):
    with T.Kernel(4) as bx:
        a = T.alloc_fragment((32, 64), "float32")
        n = T.alloc_shared((32,), "int32")
        T.copy(A[bx * 32, 0], a)
        T.copy(N[bx, 0], n){_BODIES[body]}
""")
    exploration = ttx.explore(f"{file}::kernel")
    assert exploration.error is None, str(exploration.error)
    random = np.random.default_rng(3)
    a, c = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((128, 64), (50, 64)))
    # A few rows only, so that most of them are chosen several times.
    n = random.choice([0, 1, 2, 3, 7, 40, 41, 49], (4, 32)).astype(np.int32)
    wanted = _wanted(body, a, n, c)
    checked = exploration.check([a, n, c])
    assert checked, [str(result.message) for result in checked.results if not result.passed]
    for backend in ("reference", "interpreter", "emulator"):
        np.testing.assert_array_equal(exploration.run([a, n, c], backend=backend).outputs[-1], wanted)
