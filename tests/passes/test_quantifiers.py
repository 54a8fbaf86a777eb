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
from tests.said import said
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
    notes = said(ttx.explore(joined_bits("bitxor", (9, 9), 1, "uint8")).plan)
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


def sparse(count: int, shape: tuple[int, int], dtype: str, random: np.random.Generator, name: str) -> Any:
    """Masks of blocks of which each second one has one element that decides the answer, anywhere."""
    masks = np.full((count, *shape), name == "all_of")
    for number in range(1, count, 2):
        place = [(0, 0), (shape[0] - 1, shape[1] - 1), tuple(map(random.integers, shape))][number // 2 % 3]
        masks[(number, *place)] ^= True
    if dtype == "bool":
        return masks
    return masks * random.choice(np.array([1, np.iinfo(dtype).max, np.iinfo(dtype).min or 2], dtype), masks.shape)


def marked(count: int, shape: tuple[int, int], dtype: str, name: str) -> Any:
    """A block of ones that all kernels of a core change where a large block of a mask says so."""
    rows, columns = shape
    holds = {"any_of": T.any_of, "all_of": T.all_of}[name]

    @T.prim_func
    def kernel(Mask: T.Tensor((count * rows, columns), dtype), A: T.Tensor((32, 32), "float32"),
               Out: T.Tensor((count, 32, 32), "float32")):  # fmt: skip
        with T.Kernel(count) as bx:
            mask, a, o = (
                T.alloc_shared(shape, dtype),
                T.alloc_shared((32, 32), "float32"),
                T.alloc_fragment((32, 32), "float32"),
            )
            T.copy(Mask[bx * rows, 0], mask)
            T.fill(o, 1.0)
            if holds(mask):
                T.copy(A, a)
                for i, j in T.Parallel(32, 32):
                    o[i, j] = o[i, j] + a[i, j]
            T.copy(o, Out[bx, 0, 0])

    return kernel


@pytest.mark.parametrize("name", ["any_of", "all_of"])
@pytest.mark.parametrize(("shape", "dtype"), [
    ((64, 64), "bool"), ((33, 31), "int32"), ((128, 128), "int32"), ((16, 32), "uint8"), ((40, 70), "int8"),
])  # fmt: skip
def test_large_blocks(shape: tuple[int, int], dtype: str, name: str) -> None:
    random = np.random.default_rng(3)
    masks, a = sparse(6, shape, dtype, random, name), random.integers(-9, 9, (32, 32)).astype(np.float32)
    exploration = ttx.explore(marked(6, shape, dtype, name))
    assert exploration.error is None, str(exploration.error)
    # As many statements as for any other block.
    assert len(exploration.code["reader"].text.splitlines()) < 120
    arrays = [masks.reshape(-1, shape[1]), a]
    holds = {"any_of": np.any, "all_of": np.all}[name]
    want = np.stack([1 + a * bool(holds(mask)) for mask in masks])
    for backend in ("emulator", "interpreter"):
        made = exploration.run(arrays, backend=backend)
        assert made.passed, made.message
        np.testing.assert_array_equal(made.outputs[0], want)


@pytest.mark.parametrize("page", ["tile", "row"])
def test_parts_past_the_end_of_a_tensor_in_any_layout(page: str) -> None:
    """Outside of the tensor nothing is true; the places of the blocks are elements of another tensor."""

    @T.prim_func
    def kernel(
        Mask: T.Tensor((3, 70, 20), "int32"), Start: T.Tensor((6,), "int32"), Any: T.Tensor((6, 32), "float32"),
        All: T.Tensor((6, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(6) as bx:
            T.annotate_tt_layout({Mask: {"page": page}})
            o = T.alloc_fragment((32,), "float32")
            T.fill(o, 0.0)
            if T.any_of(Mask[1, bx * 13 : bx * 13 + 13, 4:20]):
                T.fill(o, 1.0)
            T.copy(o, Any[bx, 0])
            T.fill(o, 0.0)
            if T.all_of(Mask[2, Start[bx] : Start[bx] + 10, 2:18]):
                T.fill(o, 1.0)
            T.copy(o, All[bx, 0])

    mask = np.zeros((3, 70, 20), np.int32)
    mask[1, 65:, 19], mask[1, 13, 3], mask[2] = -1, 9, 5
    mask[2, 29, 17] = 0
    start = np.array([0, 20, 45, 64, 60, 7], np.int32)
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check([mask, start])
    made = exploration.run([mask, start])
    assert made.passed
    some, every = made.outputs
    padded = np.pad(mask, ((0, 0), (0, 13), (0, 0)))
    np.testing.assert_array_equal(some[:, 0], [padded[1, n * 13 : n * 13 + 13, 4:20].any() for n in range(6)])
    np.testing.assert_array_equal(every[:, 0], [padded[2, at : at + 10, 2:18].all() for at in start])


def test_an_answer_keeps_its_value_and_is_one() -> None:
    """Asked before the block changes, used after that in a branch and in T.Parallel; of a computed block, in
    T.Parallel; and of rows."""

    @T.prim_func
    def kernel(Mask: T.Tensor((32, 64), "int32"), Out: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            m, o = T.alloc_shared((32, 64), "int32"), T.alloc_fragment((32, 32), "float32")
            T.copy(Mask, m)
            whole = T.all_of(m)
            for i, j in T.Parallel(32, 64):
                m[i, j] = m[i, j] - 1
            left = T.any_of(m[0, 0:12])
            T.fill(o, 1.0)
            if whole:
                T.fill(o, 2.0)
            for i, j in T.Parallel(32, 32):
                o[i, j] = o[i, j] + T.if_then_else(whole, 4.0, 0.0) + T.if_then_else(left, 8.0, 0.0)
                if T.any_of(m[i, 3:12]):
                    o[i, j] += 16.0
            T.copy(o, Out)

    for zero, other in ((5, 5), (0, 7), (70, 0)):
        mask = np.ones((32, 64), np.int32)
        mask[zero % 32, other] = 3 if zero == other else 0 if zero else 2
        found = run(kernel, mask)
        whole, less = mask.all(), mask - 1
        want = 1.0 + whole + 4.0 * whole + 8.0 * less[0, :12].any() + 16.0 * less[:, 3:12].any(1, keepdims=True)
        np.testing.assert_array_equal(found, np.broadcast_to(want, (32, 32)))


@T.macro
def of_a_computed_block(m: Any, o: Any) -> None:
    for i, j in T.Parallel(32, 64):
        m[i, j] = m[i, j] - 1
    if T.any_of(m):
        T.fill(o, 2.0)


@T.macro
def in_a_nest(m: Any, o: Any) -> None:
    for i, j in T.Parallel(32, 64):
        if T.any_of(m):
            o[i, j] = 2.0


@T.macro
def of_a_view(m: Any, o: Any) -> None:
    v = T.reshape(m, (64, 32))
    if T.any_of(v[2:6, 3:30]):
        T.fill(o, 2.0)


@pytest.mark.parametrize(("asked", "message", "hint"), [
    (of_a_computed_block, "T.any_of of 2,048 elements of m, which only the compute kernel knows; at most 256", "ask"),
    (in_a_nest, "T.any_of of 2,048 elements in a T.Parallel, more than 64", "ask before the T.Parallel"),
    (of_a_view, "T.any_of of 108 elements of m_view, a view, that are no block of its memory", "in its own shape"),
])  # fmt: skip
def test_blocks_that_are_not_asked(asked: Any, message: str, hint: str) -> None:
    def traced() -> Any:
        @T.prim_func
        def kernel(Mask: T.Tensor((32, 64), "int32"), Out: T.Tensor((32, 64), "float32")):
            with T.Kernel(1):
                m = T.alloc_shared((32, 64), "int32")
                o = T.alloc_fragment((32, 64), "float32")
                T.copy(Mask, m)
                T.clear(o)
                asked(m, o)
                T.copy(o, Out)

        return kernel

    try:
        error = ttx.explore(traced()).error
    except Unsupported as raised:
        error = raised
    assert isinstance(error, Unsupported)
    assert message in error.message
    assert hint in error.hint
    assert error.span is not None


def joined(*, both: bool, by_words: bool) -> Any:
    @T.prim_func
    def kernel(P: T.Tensor((96, 32), "int32"), Q: T.Tensor((96, 32), "int32"), C: T.Tensor((96, 32), "float32")):
        with T.Kernel(3) as bx:
            x = T.alloc_shared((32, 32), "float32")
            T.fill(x, 1)
            p, q = P[bx * 32 : bx * 32 + 32, 0:32], Q[bx * 32 : bx * 32 + 32, 0:32]
            if by_words:
                if T.any_of(p) and T.all_of(q):
                    T.fill(x, 3)
            elif both:
                if T.any_of(p) & T.all_of(q):
                    T.fill(x, 3)
            else:
                if T.any_of(p) | T.all_of(q):
                    T.fill(x, 3)
            T.copy(x, C[bx * 32, 0])

    return kernel


@pytest.mark.parametrize("both", [True, False])
def test_questions_are_joined_by_operators(*, both: bool) -> None:
    p, q = np.zeros((96, 32), np.int32), np.ones((96, 32), np.int32)
    p[5, 7] = p[70, 31] = 4
    q[33, 0] = q[95, 31] = 0
    exploration = ttx.explore(joined(both=both, by_words=False))
    wanted = np.repeat([3, 1, 1] if both else [3, 1, 3], 32).astype(np.float32)[:, None] * np.ones(32, np.float32)
    for backend in ("interpreter", "emulator"):
        run = exploration.run([p, q], backend=backend)
        assert run.passed, run.message
        assert np.array_equal(run.outputs[0], wanted)


def test_questions_that_words_join_are_rejected_with_the_operators() -> None:
    with pytest.raises(KernelError) as caught:
        joined(both=True, by_words=True)
    assert (caught.value.code, caught.value.hint) == (
        "TTX-K014", "write it as an `if` statement; join T.any_of and T.all_of by & and |, which ask both",
    )  # fmt: skip
