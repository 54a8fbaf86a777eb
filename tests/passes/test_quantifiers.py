# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Reductions of bits, T.any_of and T.all_of against NumPy, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.quantifiers import joined_bits, sparse_sum
from ttexplore.errors import KernelError, Unsupported

_NUMPY = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}


def run(kernel: Any, *arrays: Any) -> Any:
    """The emulator's output; every step of the lowering is right."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check([*arrays])
    assert check, str(check)
    made = exploration.run([*arrays])
    assert made.passed, made.message
    return made.outputs[0]


def whole_range(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Numbers of all sizes and signs, most of them with all bits or with none, so that joined ones differ."""
    if dtype == "bool":
        return random.random(shape) < random.choice([0.1, 0.5, 0.9])
    limits = np.iinfo(dtype)
    drawn = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    same = random.choice(np.array([0, ~np.zeros((), dtype)], dtype))
    return np.where(random.random(shape) < 0.8, same, drawn).astype(dtype)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((40, 5), 0), ((3, 70), 1), ((2, 3, 33), 1), ((40,), 0)])
@pytest.mark.parametrize("kind", [*_NUMPY])
def test_bits_are_joined_as_in_numpy(kind: str, shape: tuple[int, ...], dim: int, keeps: bool) -> None:
    random = np.random.default_rng(len(shape) + keeps)
    left = tuple(length for axis, length in enumerate(shape) if axis != dim) or (1,)
    a, s = whole_range(random, (2, *shape), "int32"), whole_range(random, (2, *left), "int32")
    found = run(joined_bits(kind, shape, dim, keeps=keeps), a, s)
    want = _NUMPY[kind].reduce(a, axis=dim + 1).reshape(2, *left)
    np.testing.assert_array_equal(found, _NUMPY[kind](s, want) if keeps else want)


@pytest.mark.parametrize(
    ("dtype", "out"), [("int8", "int8"), ("uint8", "uint8"), ("bool", "bool"), ("int8", "int32"), ("bool", "int32")]
)
@pytest.mark.parametrize("kind", [*_NUMPY])
def test_bits_of_small_integers(kind: str, dtype: str, out: str) -> None:
    random = np.random.default_rng(7)
    a, s = whole_range(random, (2, 9, 9), dtype), whole_range(random, (2, 9), out)
    found = run(joined_bits(kind, (9, 9), 1, dtype, out, keeps=True), a, s)
    np.testing.assert_array_equal(found, _NUMPY[kind](s, _NUMPY[kind].reduce(a, axis=2).astype(out)))


def test_bits_of_parts_of_blocks_and_of_tensors() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2, 8, 40), "int32"), Out: T.Tensor((3, 8), "int32")):
        with T.Kernel(1):
            a, r = T.alloc_shared((2, 8, 40), "int32"), T.alloc_fragment((3, 8), "int32")
            T.copy(A, a)
            T.reduce_bitor(a[1, :, :], r[0, :], dim=2)
            T.reduce_bitxor(A[0, 0:8, 4:30], r[1, :], dim=2)
            T.reduce_bitand(a[0, :, 32:40], r[2, :], dim=2)
            T.copy(r, Out)

    a = whole_range(np.random.default_rng(5), (2, 8, 40), "int32") & 0x7F0F0FF7
    found = run(kernel, a)
    wanted = [
        np.bitwise_or.reduce(a[1], 1), np.bitwise_xor.reduce(a[0, :, 4:30], 1), np.bitwise_and.reduce(a[0, :, 32:], 1)
    ]  # fmt: skip
    np.testing.assert_array_equal(found, wanted)


def test_the_plan_says_how_bits_are_reduced() -> None:
    notes = ttx.explore(joined_bits("bitxor", (9, 9), 1, "uint8")).plan.notes
    assert any(
        one.startswith("T.reduce_bitxor of a in line") and "8 bits, which is the lowest bit of the sum" in one
        for one in notes
    )


@pytest.mark.parametrize(("dtype", "error", "message"), [
    ("float32", KernelError, "T.reduce_bitor joins bits, and a is float32"),
    ("uint32", Unsupported, "T.reduce_bitor of a, which is uint32"),
    ("int64", Unsupported, "T.reduce_bitor of a, which is int64"),
])  # fmt: skip
def test_what_has_no_bits_to_join(dtype: str, error: type[KernelError | Unsupported], message: str) -> None:
    with pytest.raises(error) as caught:  # noqa: PT012 - traced or lowered, as the dtype has it

        @T.prim_func
        def kernel(Out: T.Tensor((32,), "int32")):
            with T.Kernel(1):
                a = T.alloc_fragment((32, 32), dtype)
                r = T.alloc_fragment((32,), "int32")
                T.fill(a, 1)
                T.reduce_bitor(a, r)
                T.copy(r, Out)

        raise ttx.explore(kernel).error or AssertionError("it lowers")
    assert caught.value.message == message
    assert caught.value.span is not None
    assert "bool" in caught.value.hint


@pytest.mark.parametrize("from_tensor", [False, True])
@pytest.mark.parametrize(("dtype", "true"), [("bool", 1), ("int32", -(2**31)), ("uint8", 128)])
@pytest.mark.parametrize("length", [1, 8, 9])
@pytest.mark.parametrize("name", ["any_of", "all_of"])
def test_blocks_whose_mask_holds(name: str, length: int, dtype: str, true: int, from_tensor: bool) -> None:
    """Masks with all elements, with none, and with one that decides the answer, at each end or between."""
    array = np.random.default_rng(2).integers(-9, 9, (4, 32, 32)).astype(np.float32)
    usual = name == "all_of"
    masks = np.full((2, 4, length + 1), usual)
    masks[0, 0], masks[0, 1], masks[0, 2, 1], masks[0, 3, -1] = True, False, not usual, not usual
    # The element before the part that is asked decides nothing.
    masks[1, 0, 0] = masks[1, 1, 1 + length // 2] = not usual
    found = run(sparse_sum(name, length, dtype, from_tensor=from_tensor), array, np.where(masks, true, 0).astype(dtype))
    holds = getattr(masks[:, :, 1:], name.removesuffix("_of"))(2)
    np.testing.assert_array_equal(found, np.einsum("bk,kij->bij", holds, array))


def test_values_that_whole_blocks_decide() -> None:
    """As numbers in T.Parallel, of blocks with more axes, negated, and of elements that T.Parallel computes."""

    @T.prim_func
    def kernel(M: T.Tensor((4, 2, 6), "int32"), Out: T.Tensor((4, 40), "float32")):
        with T.Kernel(4) as bx:
            m, o = T.alloc_shared((2, 6), "int32"), T.alloc_fragment((40,), "float32")
            T.copy(M[bx, 0, 0], m)
            both = T.all_of(m)
            for i in T.Parallel(40):
                o[i] = T.if_then_else(both, 1.0, 0.0)
                o[i] = o[i] + T.if_then_else(T.any_of(m[1, 2:5]), 2.0, 0.0)
            if not T.any_of(m):
                for i in T.Parallel(40):
                    o[i] = o[i] + 4.0
            T.copy(o, Out[bx, 0])

    m = np.ones((4, 2, 6), np.int32)
    m[1], m[2, 1, 2:5], m[3, 0, 0] = 0, 0, 0
    np.testing.assert_array_equal(run(kernel, m), np.repeat([[3], [4], [0], [2]], 40, 1))


def test_blocks_that_cannot_decide() -> None:
    """Numbers that only the compute kernel knows, numbers that are no integers, and a while that would ask once."""

    @T.prim_func
    def asked(M: T.Tensor((4,), "int32"), Out: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            m = T.alloc_fragment((4,), "int32")
            o = T.alloc_fragment((32,), "float32")
            T.copy(M, m)
            for i in T.Parallel(4):
                m[i] = m[i] + 1
            T.clear(o)
            if T.any_of(m):
                T.fill(o, 1.0)
            T.copy(o, Out)

    computed = ttx.explore(asked).error
    assert isinstance(computed, Unsupported)
    assert "depends on an element of the block m, which only the compute kernel knows" in str(computed)
    assert "T.if_then_else" in str(computed.hint)
    floats = ttx.explore(sparse_sum("any_of", 3, "float32")).error
    assert isinstance(floats, Unsupported)
    assert "decides a branch" in str(floats)
    assert "use integers or bool" in str(floats.hint)

    with pytest.raises(KernelError, match="the condition of a kernel's while stores a value"):

        @T.prim_func
        def kernel(M: T.Tensor((40,), "int32"), Out: T.Tensor((32,), "float32")):
            with T.Kernel(1):
                o = T.alloc_fragment((32,), "float32")
                T.clear(o)
                while T.any_of(M):
                    T.clear(o)
                T.copy(o, Out)

    with pytest.raises(KernelError, match=r"T\.any_of takes a tensor, a buffer or a region of one, not 1"):

        @T.prim_func
        def of_number(Out: T.Tensor((32,), "float32")):
            with T.Kernel(1):
                o = T.alloc_fragment((32,), "float32")
                T.fill(o, 1.0)
                if T.any_of(1):
                    T.copy(o, Out)
