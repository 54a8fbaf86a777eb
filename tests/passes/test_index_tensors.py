"""Elements of tensors that decide branches, lengths of loops and places of blocks, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.index_tensors import chained, counted, in_two_loops, masked_blocks, ragged, table
from tests.kept import only_read, with_old
from tests.said import said
from ttexplore.errors import BackendError, KernelError, Unsupported
from ttexplore.plan import KERNEL_ROLES

Numbers = np.ndarray[Any, Any]


def held(
    kernel: Any, numbers: dict[int, Any], expected: Callable[..., Numbers], tolerance: float = 1e-6
) -> ttx.Exploration:
    """Each step and the emulator against what NumPy computes of the tensors that are only read; `numbers` are the index
    tensors, by position."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    inputs = [*exploration.inputs()]
    for position, values in numbers.items():
        inputs[position] = np.asarray(values, inputs[position].dtype)
    read = only_read(exploration, inputs)
    stored = expected(*(one.astype(np.float64) if n not in numbers else one for n, one in enumerate(read)))
    want = with_old(exploration, inputs, stored)
    check = exploration.check(inputs)
    assert check, str(check)
    run = exploration.run(inputs)
    assert run.passed, run.message
    np.testing.assert_allclose(run.outputs[0], want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    return exploration


MASKS = {
    "none": np.zeros((2, 2, 4)),
    "all": np.ones((2, 2, 4)),
    "first": np.arange(16).reshape(2, 2, 4) % 4 == 0,
    "last": np.arange(16).reshape(2, 2, 4) % 4 == 3,
    "some": np.arange(16).reshape(2, 2, 4) * 7 % 5 < 2,
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("dtype", "size"), [("int32", 64), ("uint8", 128)])
def test_blocks_that_a_mask_leaves_out(name: str, dtype: str, size: int) -> None:
    mask = MASKS[name].astype(dtype) * 5

    def expected(a: Numbers, b: Numbers, mask: Numbers) -> Numbers:
        c = np.zeros((2 * size, 2 * size))
        for by, bx, k in zip(*np.nonzero(mask), strict=True):
            rows, columns, part = (slice(n * width, (n + 1) * width) for n, width in ((by, size), (bx, size), (k, 32)))
            c[rows, columns] += a[rows, part] @ b[part, columns]
        return c

    held(masked_blocks(dtype, size), {2: mask}, expected, 2e-3)


@pytest.mark.parametrize("counts", [[4, 0, 2], [0, 0, 0], [-3, 1, 4], [9, 4, 1]])
def test_turns_that_a_tensor_counts(counts: Sequence[int]) -> None:
    """Fewer than none are none; what lies past the end of the tensor is zero."""

    def expected(a: Numbers, counts: Numbers) -> Numbers:
        blocks = [a[32 * n : 32 * n + 32].reshape(32, 4, 64) for n in range(3)]
        return np.concatenate([one[:, : max(count, 0)].sum(1) for one, count in zip(blocks, counts, strict=True)])

    held(counted(), {1: counts}, expected, 1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_blocks_by_a_table(dtype: str) -> None:
    def expected(a: Numbers, pages: Numbers, to: Numbers) -> Numbers:
        c = np.zeros((4, 32, 64))
        for n in range(4):
            for k, page in enumerate(pages[n]):
                if page >= 0:
                    c[to[n]] += a[page] * (k + 1)
        return c.reshape(128, 64)

    pages = [[0, 4, -1], [-1, -1, -1], [2, 2, 3], [1, 0, 4]]
    exploration = held(table(dtype=dtype), {1: pages, 2: [3, 1, 0, 2]}, expected, 1e-2)
    notes = said(exploration.plan)
    assert (
        "elements of Pages decide: which branches and turns are taken, by the reader for all kernels of a core" in notes
    )
    assert "elements of Pages decide: where A is loaded, which is checked when the kernel runs" in notes
    assert (
        "elements of To decide: where C is stored, which is checked when the kernel runs; that no two blocks store to "
        "one place is up to the kernel"
    ) in notes


@pytest.mark.parametrize("starts", [[0, 40, 97, 160], [0, 0, 160, 160], [3, 64, 65, 66]])
def test_sequences_of_any_length(starts: Sequence[int]) -> None:
    def expected(a: Numbers, starts: Numbers) -> Numbers:
        c = np.zeros((3, 32, 64))
        for n in range(3):
            for row in range(starts[n], starts[n + 1]):
                c[n, (row - starts[n]) % 32] += a[row]
        return c.reshape(96, 64)

    held(ragged(), {1: starts}, expected, 1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_an_element_that_says_which_element_counts(dtype: str) -> None:
    def expected(a: Numbers, first: Numbers, second: Numbers) -> Numbers:
        c = np.full((4, 32, 64), -1.0)
        for n in range(3):
            if first[n] > 0:
                c[n] = a.reshape(3, 32, 64)[second[first[n]]] + 1
        return c.reshape(128, 64)

    held(chained(dtype), {1: [2, 0, 1], 2: [1, 0, 2]}, expected, 1e-2)


@pytest.mark.parametrize("pages", [[[0, 5, 1]] * 4, [[0, 1, 2]] * 3 + [[0, 1, 9]]])
def test_a_place_outside_of_the_tensor(pages: Any) -> None:
    """The interpreter and the emulator stop: nothing else would show it."""
    exploration = ttx.explore(table())
    inputs = [*exploration.inputs()]
    inputs[1], inputs[2] = np.array(pages, np.int32), np.arange(4, dtype=np.int32)
    with pytest.raises(KernelError, match="a place that elements of tensors decide is outside of its tensor"):
        exploration.check(inputs)
    with pytest.raises(BackendError) as caught:
        exploration.run(inputs)
    assert "a place that elements of tensors decide is outside: not page < 5" in caught.value.message
    assert "check the elements" in caught.value.hint


@pytest.mark.parametrize("cores", [(1, 1), (2, 1)])
def test_two_blocks_that_store_to_one_place(cores: tuple[int, int]) -> None:
    """Nothing orders blocks, on one core either; a block may store to one place again."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 8, 32), "float32"), To: T.Tensor((4, 2), "int32"), B: T.Tensor((9, 8, 32), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((8, 32), "float32")
            T.copy(A[bx, 0, 0], a)
            for k in T.serial(2):
                T.copy(a, B[To[bx, k], 0, 0])

    exploration = ttx.explore(kernel, options={"cores": cores})
    (a, to, b) = (one.copy() for one in exploration.inputs())
    to[:] = [[8, 8], [1, 0], [3, 4], [6, 2]]
    assert exploration.check([a, to, b])
    want = b.copy()
    want[to[:, 0]], want[to[:, 1]] = a, a
    np.testing.assert_array_equal(exploration.run([a, to, b]).outputs[0], want)
    to[2, 1] = 1
    for action in (exploration.check, exploration.run):
        with pytest.raises(KernelError) as caught:
            action([a, to, b])
        assert caught.value.message == (
            "block (1) and block (2) both store to the same elements of B, where elements of a tensor say: the result "
            "depends on which comes last"
        )
        assert caught.value.hint == "give each block other elements of B, or add to B with T.atomic_add"
        assert caught.value.span is not None


def test_an_element_outside_of_its_tensor() -> None:
    exploration = ttx.explore(chained())
    inputs = [*exploration.inputs()]
    inputs[1], inputs[2] = np.array([3, 0, 0], np.int32), np.zeros(3, np.int32)
    with pytest.raises(KernelError, match="Second has 3 elements along axis 0; index 3 is outside"):
        exploration.check(inputs)
    with pytest.raises(BackendError, match="a place that elements of tensors decide is outside"):
        exploration.run(inputs)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("make", [table, ragged, chained, counted])
def test_inputs_that_are_drawn_stay_inside(make: Callable[[], Any], seed: int) -> None:
    """Random elements of index tensors are such that no place is outside, and that something is done."""
    exploration = ttx.explore(make())
    inputs = exploration.inputs(seed)
    check = exploration.check(seed=seed)
    assert check, str(check)
    for array, again in zip(inputs, exploration.inputs(seed), strict=True):
        np.testing.assert_array_equal(array, again)
    others = ttx.explore(make()).reference([inputs[0], np.zeros_like(inputs[1]), *inputs[2:]])
    assert any((one != other).any() for one, other in zip(exploration.reference(inputs), others, strict=True))


def test_what_index_tensors_are_drawn_as() -> None:
    """Starts of sequences cover all rows; blocks are stored to places of their own."""
    starts = ttx.explore(ragged()).inputs()[1]
    assert starts[0] == 0
    assert starts[-1] == 160
    assert (np.diff(starts) >= 0).all()
    _, pages, places, _ = ttx.explore(table()).inputs()
    assert pages.max() < 5
    assert len(np.unique(pages)) > 2
    assert sorted(places) == [0, 1, 2, 3]
    drawn = ttx.explore(table()).inputs(kind="ones")
    assert (drawn[1] == 1).all()


def test_who_is_told() -> None:
    """The reader reads a number once; only kernels that need it get it."""
    exploration = ttx.explore(table())
    code = {role: exploration.code[role].text for role in KERNEL_ROLES}
    assert code["reader"].count("read_number(noc, Pages") == 1
    assert "numbers_for_compute_buffer.read_tile_value(0, 0)" in code["compute"]
    assert "numbers_for_writer_buffer.get_read_ptr()" in code["writer"]
    buffers = {one.name: (one.producer, one.consumer) for one in exploration.plan.buffers}
    assert buffers["numbers_for_compute"] == ("reader", "compute")
    assert buffers["numbers_for_writer"] == ("reader", "writer")
    exploration = ttx.explore(masked_blocks())
    assert "numbers_for_writer" not in {one.name for one in exploration.plan.buffers}


def test_elements_of_floats_decide_nothing() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), S: T.Tensor((2,), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.clear(a)
            if S[bx] > 0.5:
                T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert error.message == "an element of S, which is float32, decides a branch, a length or a place"
    assert error.hint == "use integers or bool: the processors that move data have no floating-point unit"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_elements_that_are_stored_where_numbers_say(dtype: str) -> None:
    @T.prim_func
    def scattered(A: T.Tensor((64,), dtype), N: T.Tensor((64,), "int32"), C: T.Tensor((64,), dtype)):
        with T.Kernel(4) as block:
            for k in range(15):
                C[N[block * 16 + k]] = A[block * 16 + k] * 2
            last = N[block * 16 + 15]
            C[last] = A[block * 16 + 15]

    places = np.random.default_rng(0).permutation(64)

    def expected(a: Numbers, numbers: Numbers) -> Numbers:
        want = np.empty(64)
        want[numbers] = a * np.where(np.arange(64) % 16 == 15, 1, 2)
        return want

    held(scattered, {1: places}, expected)
    for outside in (-1, 64):
        changed = [*ttx.explore(scattered).inputs()]
        changed[1] = np.where(np.arange(64) == 20, outside, places).astype(np.int32)
        with pytest.raises(BackendError, match="a place that elements of tensors decide is outside"):
            ttx.explore(scattered).run(changed)


@pytest.mark.parametrize("size", [32, 96])
@pytest.mark.parametrize("length", ["T.max(N[bx], 1)", "N[bx] % 3 + 1"])
def test_products_in_a_loop_of_at_least_one_turn(tmp_path: Path, length: str, size: int) -> None:
    """In DST alone, and through a circular buffer."""
    file = tmp_path / "kernels.py"
    file.write_text(f"""import ttexplore.language as T
@T.prim_func
def kernel(
    A: T.Tensor(({size}, 96), "bfloat16"), B: T.Tensor((96, 64), "bfloat16"), N: T.Tensor((2,), "int32"),
    C: T.Tensor((2, {size}, 64), "float32"),
):
    with T.Kernel(2) as bx:
        a, b = T.alloc_shared(({size}, 32), "bfloat16"), T.alloc_shared((32, 64), "bfloat16")
        c = T.alloc_fragment(({size}, 64), "float32")
        T.clear(c)
        for k in range({length}):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx, 0, 0])
""")

    def expected(a: Numbers, b: Numbers, n: Numbers) -> Numbers:
        ends = 32 * (np.maximum(n, 1) if "max" in length else n % 3 + 1)
        return np.stack([a[:, :end] @ b[:end] for end in ends])

    held(f"{file}::kernel", {2: [3, -4] if "max" in length else [5, 0]}, expected, 2e-3)


def test_updates_of_single_elements() -> None:
    @T.prim_func
    def totals(A: T.Tensor((6, 40), "float32"), Z: T.Tensor((2,), "float32"), M: T.Tensor((3,), "float32")):
        with T.Kernel(6) as block:
            a = T.alloc_fragment((40,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A[block, 0], a)
            T.reduce_sum(a, s, dim=0)
            T.atomic_add(Z[1], s[0] * 0.5)
            T.atomic_max(M[block % 3], a[33])

    exploration = ttx.explore(totals)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check()
    (a, z, m), run = exploration.inputs(), exploration.run()
    assert run.passed, run.message
    np.testing.assert_allclose(run.outputs[0], z + np.array([0, a.astype(np.float64).sum() / 2]), rtol=1e-5)
    np.testing.assert_array_equal(run.outputs[1], np.maximum(m, np.maximum(a[:3, 33], a[3:, 33])))


@pytest.mark.parametrize("end", [0, 1, 2, 3, 4, 5, 8])
def test_a_condition_that_says_that_a_loop_makes_a_turn(end: int) -> None:
    """Of two loops over the same sums the second may make none, and the first makes one: the condition says so."""

    def expected(a: Numbers, _: Numbers) -> Numbers:
        blocks, half, out = a.reshape(4, 64, 64), end // 2, np.full((4, 64, 64), np.nan)
        for bx in range(min(4, half * 2)):
            left = half * 2 - bx
            out[bx] = 0.0
            for k in range(1 if bx < half else left):
                one = blocks[(bx + k) % 4]
                out[bx] += one @ one.T @ one
            for k in range(left if bx < half else 0):
                out[bx] += blocks[k % 4] @ blocks[k % 4]
        return out.reshape(256, 64)

    exploration = ttx.explore(in_two_loops())
    assert exploration.error is None, str(exploration.error)
    inputs = [*exploration.inputs()]
    inputs[1][:] = end
    want = expected(*(one.astype(np.float64) for one in only_read(exploration, inputs)))
    want = with_old(exploration, inputs, want)
    check = exploration.check(inputs)
    assert check, str(check)
    run = exploration.run(inputs)
    assert run.passed, run.message
    np.testing.assert_allclose(run.outputs[0], want, rtol=2e-2, atol=2e-2 * np.max(np.abs(want), initial=0))


def test_values_that_stay_in_dst_around_such_a_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "bfloat16"), N: T.Tensor((4,), "int32"), C: T.Tensor((256, 64), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            n = N[bx]
            if bx < n:
                T.clear(c)
                for k in T.Pipelined(T.if_then_else(bx < 1, 1, n - bx)):
                    T.copy(A[k * 64, 0], a)
                    T.gemm(a, a, c)
                for k in T.Pipelined(T.if_then_else(bx < 1, 0, n - bx)):
                    T.copy(A[k * 64, 0], a)
                    T.gemm(a, a, c)
                T.copy(c, C[bx * 64, 0])

    def expected(a: Numbers, n: Numbers) -> Numbers:
        blocks, out = a.reshape(4, 64, 64), np.full((4, 64, 64), np.nan)
        for bx in range(4):
            turns = int(n[bx]) - bx
            if turns > 0:
                out[bx] = sum(blocks[k] @ blocks[k] for k in range(turns)) * 2 if bx else blocks[0] @ blocks[0]
        return out.reshape(256, 64)

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    for numbers in ([0, 0, 0, 0], [1, 2, 3, 4], [3, 1, 4, 7], [-1, 5, 0, 4]):
        inputs = [*exploration.inputs()]
        inputs[1][:] = numbers
        want = expected(*(one.astype(np.float64) for one in only_read(exploration, inputs)))
        want = with_old(exploration, inputs, want)
        check = exploration.check(inputs)
        assert check, str(check)
        run = exploration.run(inputs)
        assert run.passed, run.message
        np.testing.assert_allclose(run.outputs[0], want, rtol=2e-3, atol=2e-3 * np.max(np.abs(want), initial=0))


# The least and the greatest int32, and neighbours of the numbers that the kernels below compare with.
FAR = np.array([2**31 - 1, -(2**31), 3_000_000, 2_999_999, -(2**31) + 1, 2**31 - 2, 5, -1], np.int32)


def chosen(condition: Callable[[Any], Any], *, in_parallel: bool) -> Any:
    @T.prim_func
    def kernel(L: T.Tensor((8,), "int32"), A: T.Tensor((256, 32), "float32"), B: T.Tensor((256, 32), "float32")):
        with T.Kernel(8) as bx:
            x = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], x)
            if in_parallel:
                if L[bx] != 4:
                    for i, j in T.Parallel(32, 32):
                        x[i, j] = T.if_then_else(condition(L[bx]), x[i, j] * 2, x[i, j])
            else:
                if condition(L[bx]):
                    T.fill(x, 7)
            T.copy(x, B[bx * 32, 0])

    return kernel


@pytest.mark.parametrize("in_parallel", [False, True])
@pytest.mark.parametrize("condition", [
    lambda v: v > 2_999_999, lambda v: v == -(2**31), lambda v: v != -(2**31), lambda v: v >= 2**31 - 1,
    lambda v: (v > 2_999_999) & (v < 2**31 - 1),
])  # fmt: skip
def test_any_int32_decides_what_is_chosen(condition: Callable[[Any], Any], *, in_parallel: bool) -> None:
    exploration = ttx.explore(chosen(condition, in_parallel=in_parallel))
    a = np.random.default_rng(3).integers(-9, 9, (256, 32)).astype(np.float32)
    holds = np.repeat(np.array([bool(condition(int(number))) for number in FAR]), 32)[:, None]
    wanted = np.where(holds, a * 2 if in_parallel else np.float32(7), a)
    for backend in ("interpreter", "emulator"):
        run = exploration.run([FAR, a], backend=backend)
        assert run.passed, run.message
        assert np.array_equal(run.outputs[0], wanted)
