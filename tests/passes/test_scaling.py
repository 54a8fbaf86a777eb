# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Large kernels: what lowering does grows as the kernel, and no depth of an expression ends in a RecursionError."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from benchmarks.scaling import SHAPES
from ttexplore.errors import Unsupported
from ttexplore.ir import dataflow
from ttexplore.ir.arithmetic.deep import Deep, deep
from ttexplore.ir.names import unused_name


def calls_of(shape: str, size: int) -> int:
    """The Python functions that lowering a kernel calls: the same number each time, however fast the machine."""
    kernel = SHAPES[shape](size)
    count = 0

    def count_call(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(count_call)
    try:
        exploration = ttx.explore(kernel)
    finally:
        sys.setprofile(None)
    assert exploration.error is None
    return count


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_lowering_is_linear(shape: str) -> None:
    """Twice as much more of a kernel takes twice as many more calls: what every kernel takes falls out."""
    calls_of(shape, 2)
    few, some, many = (calls_of(shape, size) for size in (20, 40, 80))
    assert (many - some) / (some - few) < 2 * 1.15


def explored(expression: Any) -> Any:
    """A kernel that stores an expression of a[i, j]."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                c[i, j] = expression(a[i, j])
            T.copy(c, C)

    return ttx.explore(kernel)


def ladder(x: Any) -> Any:
    """Each step uses the one before twice: written out it has 3^40 operations."""
    for _ in range(40):
        x = x * 0.5 + T.abs(x) * 0.25
    return x


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda x: sum([x * float(k % 3) for k in range(600)]), lambda x: x * 600),
        (ladder, lambda x: np.where(x > 0, x * 0.75**40, x * 0.25**40)),
    ],
    ids=["many terms", "shared parts"],
)
def test_deep_expressions(expression: Any, expected: Any) -> None:
    exploration = explored(expression)
    array = np.linspace(0.5, 2, 1024, dtype=np.float32).reshape(32, 32) * np.where(np.eye(32), -1, 1)
    result = exploration.reference([array.astype(np.float32)])[0]
    np.testing.assert_allclose(result, expected(array), rtol=1e-3)
    assert exploration.check([array.astype(np.float32)])
    assert max(len(line.text) for line in exploration.steps[0].listing.lines) < 20_000


def explored_index() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), B: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[sum(bx for _ in range(3200)) // 100, 0], a)
            T.copy(a, B[bx * 32, 0])

    return ttx.explore(kernel)


def test_deep_index_is_refused_at_its_line() -> None:
    with pytest.raises(Unsupported, match=r"an expression of .* operations, nested 3200 deep") as raised:
        explored_index()
    assert raised.value.span is not None
    assert "fewer steps" in raised.value.hint


def test_names_stay_unused_ones() -> None:
    taken: set[str] = set()
    for number in range(1, 300):
        name = unused_name("value", taken)
        assert name == ("value" if number == 1 else f"value_{number}")
        taken.add(name)
    taken -= {"value_7", "value_200"}
    assert unused_name("value", taken) not in taken


def test_calls_inside_one_another_need_no_stack() -> None:
    def depth(n: int) -> Deep:
        if n == 0:
            return 0
        return 1 + (yield depth(n - 1))

    assert deep(depth(5 * sys.getrecursionlimit())) == 5 * sys.getrecursionlimit()


def nested(depth: int) -> Any:
    """A kernel whose copies stand in loops inside one another."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "bfloat16")
            for _ in T.grid(*([1] * depth)):
                T.copy(A, a)
                T.copy(a, C)

    return kernel


def test_data_flow_does_not_double_with_each_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    visited = 0
    statement = dataflow._Scan.statement

    def counted(*arguments: Any) -> Any:
        nonlocal visited
        visited += 1
        return statement(*arguments)

    monkeypatch.setattr(dataflow._Scan, "statement", counted)
    numbers: list[int] = []
    for depth in (4, 8, 12):
        visited = 0
        assert ttx.explore(nested(depth)).error is None
        numbers.append(visited)
    assert numbers[2] - numbers[1] <= 1.2 * (numbers[1] - numbers[0])


def looped(depth: int) -> Any:
    """A kernel with so many loops inside one another, besides its block and its elements."""

    @T.macro
    def deeper(a, c, left):
        if left == 0:
            for i, j in T.Parallel(32, 32):
                c[i, j] = c[i, j] * 0.5 + a[i, j]
        else:
            for _ in T.serial(2 if left % 4 == 0 else 1):
                deeper(a, c, left - 1)

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.clear(c)
            deeper(a, c, depth)
            T.copy(c, C)

    return kernel


def test_loops_inside_one_another() -> None:
    exploration = ttx.explore(looped(13))
    (a,) = exploration.inputs()
    expected = np.zeros((32, 32), np.float32)
    for _ in range(8):
        expected = expected * np.float32(0.5) + a
    np.testing.assert_allclose(exploration.run(backend="interpreter").outputs[0], expected, rtol=1e-2, atol=1e-2)
    assert exploration.check().ok


@pytest.mark.parametrize("depth", [14, 30, 65, 100])
def test_loops_too_deep_inside_one_another(depth: int) -> None:
    with pytest.raises(Unsupported) as caught:
        ttx.explore(looped(depth))
    assert caught.value.message == "loops and branches are nested more than 16 deep"
    assert caught.value.hint.startswith("merge loops into one")
    assert caught.value.span is not None


@pytest.mark.parametrize("branches", [400, 1000])
def test_branches_too_deep_inside_one_another(tmp_path: Path, branches: int) -> None:
    """Also those that Python decides: the rewritten function has a block for each."""
    arms = "".join(f"        elif MODE == {n}:\n            T.copy(a, C)\n" for n in range(1, branches))
    file = tmp_path / "kernel.py"
    file.write_text(
        "import ttexplore.language as T\nMODE = 1\n\n@T.prim_func\n"
        "def kernel(A: T.Tensor((32, 32), 'float32'), C: T.Tensor((32, 32), 'float32')):\n"
        "    with T.Kernel(1):\n        a = T.alloc_shared((32, 32), 'float32')\n        T.copy(A, a)\n"
        f"        if MODE == 0:\n            T.copy(a, C)\n{arms}"
    )
    with pytest.raises(Unsupported) as caught:
        ttx.explore(f"{file}::kernel")
    assert caught.value.message == "the loops and branches of kernel are nested too deeply"
    assert caught.value.span is not None
    assert caught.value.span.file == str(file)
