# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
# ruff: noqa: F841
"""Groups of threads become one sequence of statements if that is proved, and are rejected otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import warps
from tests.corpus.warps import FAULTS, handed_on, mutual, one_warp_each, ring
from tests.said import said
from ttexplore.errors import KernelError, TTExploreError, Unsupported

BF16, FP32 = "bfloat16", "float32"
KERNELS = Path(warps.__file__).read_text(encoding="utf-8")


def inputs(*shapes: tuple[int, ...]) -> list[Any]:
    # Small integers, so that sums of products are exact.
    generator = np.random.default_rng(0)
    return [generator.integers(-3, 4, shape).astype(np.float32) for shape in shapes]


def error_of(kernel: Any) -> TTExploreError:
    error = ttx.explore(kernel).error
    assert error is not None, "the kernel was lowered"
    return error


def product(turns: int, rows: int) -> tuple[list[Any], Any]:
    a, b = inputs((rows, 64 * turns), (64 * turns, 64))
    return [a, b], a @ b


def test_a_ring_of_slots() -> None:
    for turns, slots in ((5, 2), (3, 1), (2, 3)):
        ex = ttx.explore(ring(turns, slots))
        given, wanted = product(turns, 128)
        # The groups themselves, at the same time, and what became of them.
        np.testing.assert_array_equal(ex.reference(given)[0], wanted)
        assert ex.check(given)
        np.testing.assert_array_equal(ex.run(given).outputs[0], wanted)


def test_slots_are_the_depth_of_the_circular_buffer() -> None:
    for slots in (1, 2, 3):
        plan = ttx.explore(ring(6, slots)).plan
        assert [plan.buffer(name).pages for name in ("a", "b")] == [4 * slots, 4 * slots]
    notes = said(ttx.explore(ring(6, 3)).plan)
    assert notes[2:9] == (
        "threads 0 to 127: load blocks: the reader",
        "threads 128 to 255: compute: the compute kernel; store: the writer",
        "barrier full[0], full[1], full[2]: full: arriving is the push of a, b, waiting its cb_wait_front",
        "barrier empty[0], empty[1], empty[2]: empty: arriving is the pop of a, b, waiting its cb_reserve_back",
        "a: 3 slots used in turns become a circular buffer 3 blocks deep",
        "b: 3 slots used in turns become a circular buffer 3 blocks deep",
        "thread groups: proved equal to one sequence of statements, over 50 steps per block",
    )


def test_three_groups() -> None:
    a, b = inputs((192, 64), (64, 64))
    wanted = sum(a[64 * k : 64 * k + 64] * 0.5 @ b for k in range(3))
    for asynchronous in (True, False):
        ex = ttx.explore(handed_on(3, asynchronous=asynchronous))
        assert ex.check([a, b])
        np.testing.assert_array_equal(ex.run([a, b]).outputs[0], wanted)


def test_groups_that_need_each_other_within_a_turn() -> None:
    (a,) = inputs((96, 32))
    x, y = np.full((32, 32), 1.0, np.float32), np.full((32, 32), 2.0, np.float32)
    for k in range(3):
        y = y * np.float32(0.25) + a[32 * k : 32 * k + 32]
        x = x * np.float32(0.5) + y
    ex = ttx.explore(mutual(3))
    assert ex.check([a])
    np.testing.assert_allclose(ex.run([a]).outputs[0], np.concatenate([x, y]), rtol=1e-6)


def test_products_that_arrive_at_barriers() -> None:
    given, wanted = product(4, 64)
    ex = ttx.explore(one_warp_each(4, 3))
    assert ex.check(given)
    np.testing.assert_array_equal(ex.run(given).outputs[0], wanted)


@pytest.mark.parametrize(
    ("fault", "message", "hint"),
    [
        ("no full arrive", "at which nobody arrives", "let 128 threads arrive there: T.barrier_arrive(full[0])"),
        ("no full wait", "a race for a", "wait for that copy first: T.barrier_wait(full[0], parity)"),
        ("full parity", "a race for a", "in which that copy ends: check the parity"),
        ("no empty arrive", "for the phase of parity 0 of empty[0], at which nobody arrives", "let 128 threads arrive"),
        ("no empty wait", "a race for a", "wait before a is filled again: let threads "),
        ("empty parity", "threads wait for ever:", "check the parities: the first wait for what others fill has"),
        ("count", "128 threads arrive at full[0], where 64 of 64 are missing", "allocate it for 128 threads"),
        ("other slot", "a race for a", "wait for that copy first: T.barrier_wait(full[1], parity)"),
        ("no copy barrier", "a race for b", "wait for that copy first: T.barrier_wait(empty[0], parity)"),
    ],
)
def test_a_fault_of_the_protocol(fault: str, message: str, hint: str) -> None:
    assert fault in FAULTS
    error = error_of(ring(5, 2, fault))
    assert isinstance(error, KernelError)
    assert error.code == ("TTX-K015" if "race" in message else "TTX-K016")
    assert message in error.message
    assert hint in str(error.hint)
    assert error.span is not None


def test_a_race_names_both_lines() -> None:
    error = error_of(ring(5, 2, "no full wait"))
    lines = [
        i + 1 for i, line in enumerate(KERNELS.splitlines()) if "tma_copy(A[bx * 64" in line or "T.gemm(a[(k" in line
    ]
    assert error.message.splitlines() == [
        "a race for a: nothing orders two accesses",
        f"  line {lines[0]}, k = 0: threads 0 to 127 write it",
        f"  line {lines[1]}, k = 0: threads 128 to 255 read it",
    ]
    assert error.span is not None
    assert error.span.line == lines[1]


def test_every_fault_is_found_with_any_number_of_slots() -> None:
    # With one slot there is no other one.
    for slots in (1, 2, 3):
        for fault in FAULTS:
            if (fault, slots) != ("other slot", 1):
                assert isinstance(error_of(ring(7, slots, fault)), KernelError), (fault, slots)


def _scaled(threads: Any, arrivals: int, first: Any, second: Any) -> Any:
    """A kernel in which the threads that `first` chooses fill a block, which those of `second` scale."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=threads) as bx:
            a = T.alloc_shared((64, 64), FP32)
            filled = T.alloc_barrier(arrivals)
            if first():
                T.copy(A, a)
                T.barrier_arrive(filled)
            if second():
                T.barrier_wait(filled, 0)
                for i, j in T.Parallel(64, 64):
                    a[i, j] = a[i, j] * 2
                T.copy(a, B)

    return kernel


_OF_AXES = {
    "along the first": ((128, 2), 128, lambda: T.get_thread_binding() < 64, lambda: T.get_thread_binding() >= 64),
    "half a warp group": ((128, 2), 2, lambda: T.get_thread_binding() < 1, lambda: T.get_thread_binding() == 127),
    "three axes": ((32, 4, 2), 16, lambda: T.get_thread_binding() < 2, lambda: T.get_thread_binding() >= 2),
    "warp groups": ((128, 2), 128, lambda: T.get_warp_group_idx() == 0, lambda: T.get_warp_group_idx() == 1),
    "warp groups of several rows": (
        (32, 8), 128, lambda: T.get_warp_group_idx() == 1, lambda: T.get_warp_group_idx() == 0
    ),
    "one axis": ((256,), 128, lambda: T.get_thread_binding() < 128, lambda: T.get_warp_group_idx() == 1),
}  # fmt: skip


@pytest.mark.parametrize("way", _OF_AXES)
def test_groups_in_a_block_with_several_axes(way: str) -> None:
    threads, arrivals, first, second = _OF_AXES[way]
    ex = ttx.explore(_scaled(threads, arrivals, first, second))
    assert ex.error is None, str(ex.error)
    (a,) = inputs((64, 64))
    np.testing.assert_array_equal(ex.run([a]).outputs[0], a * 2)
    wrong = error_of(_scaled(threads, arrivals + 1, first, second))
    assert wrong.message.count(f"{arrivals} of {arrivals + 1} threads have arrived") == 1


def test_a_warp_group_in_a_block_with_several_axes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=(64, 4)) as bx:
            a = T.alloc_shared((64, 64), FP32)
            filled = T.alloc_barrier(128)
            with T.ws(1):
                T.copy(A, a)
                T.barrier_arrive(filled)
            with T.ws(0):
                T.barrier_wait(filled, 0)
                T.copy(a, B)

    (a,) = inputs((64, 64))
    np.testing.assert_array_equal(ttx.explore(kernel).run([a]).outputs[0], a)


def test_a_warp_group_of_single_threads_is_refused() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), FP32), B: T.Tensor((128,), FP32)):
        with T.Kernel(1, threads=(128, 2)) as bx:
            tx = T.get_thread_binding()
            if T.get_warp_group_idx() == 0:
                B[tx] = A[tx]

    error = error_of(kernel)
    assert isinstance(error, Unsupported)
    assert error.message == "the warp group of a thread, in code for single threads, is not lowered"


def two_groups(write: Any) -> Any:
    """A kernel of two groups with a block and a barrier, whose statements `write` gives."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), FP32)
            f = T.alloc_fragment((64, 64), FP32)
            bar = T.alloc_barrier(128)
            write(A, B, a, f, bar)

    return kernel


def refused(write: Any) -> TTExploreError:
    return error_of(two_groups(T.macro(write)))


def test_registers_of_other_threads() -> None:
    def write(A, B, a, f, bar):
        with T.ws(0):
            T.copy(A, f)
            T.barrier_arrive(bar)
        with T.ws(1):
            T.barrier_wait(bar, 0)
            T.copy(f, B)

    error = refused(write)
    assert error.code == "TTX-K015"
    assert "f lies in the registers of threads 0 to 127" in error.message


def test_a_phase_that_can_be_missed() -> None:
    def write(A, B, a, f, bar):
        with T.ws(0):
            T.copy(A, a)
            T.barrier_arrive(bar)
            T.barrier_arrive(bar)
        with T.ws(1):
            T.barrier_wait(bar, 0)
            T.copy(a, B)

    error = refused(write)
    assert error.code == "TTX-K016"
    assert "threads 128 to 255 can miss what they wait for" in error.message


def test_a_parity_that_is_none() -> None:
    def write(A, B, a, f, bar):
        with T.ws(0):
            T.copy(A, a)
            T.barrier_arrive(bar)
        with T.ws(1):
            T.barrier_wait(bar, 2)
            T.copy(a, B)

    assert "the parity of this wait for bar is 2" in refused(write).message


def test_a_copy_after_the_arrival() -> None:
    def write(A, B, a, f, bar):
        with T.ws(0):
            T.barrier_arrive(bar)
            T.tma_copy(A, a, barrier=bar)
        with T.ws(1):
            T.barrier_wait(bar, 0)
            T.copy(a, B)

    error = refused(write)
    assert error.code in ("TTX-K015", "TTX-K016")
    assert error.span is not None


def test_a_product_that_is_not_over() -> None:
    def write(A, B, a, f, bar):
        b = T.alloc_shared((64, 64), BF16)
        c = T.alloc_fragment((64, 64), FP32)
        T.copy(A, b)
        with T.ws(0):
            T.clear(c)
            T.wgmma_gemm(b, b, c)
            T.copy(c, B)

    error = refused(write)
    assert "a race for c: " in error.message
    assert error.hint == "wait for that product first: T.wait_wgmma(0)"


@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("clears", [False, True])
def test_a_product_of_the_matrix_unit_into_registers_is_over(viewed: bool, clears: bool) -> None:
    """Only what is in the unit's own memory is unfinished without a barrier."""

    def kernel(allocate: Any) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((64, 128), BF16), C: T.Tensor((64, 64), FP32), S: T.Tensor((64,), FP32)):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((64, 64), BF16)
                c = allocate((64, 64), FP32)
                s = T.alloc_fragment((64,), FP32)
                product = T.view(c, (64, 64)) if viewed else c
                T.clear(c)
                T.clear(s)
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(A[:, k * 64 : k * 64 + 64], a)
                    T.tcgen05_gemm(a, a, product, transpose_B=True, clear_accum=clears and k == 1)
                    T.reduce_sum(c, s, dim=1, clear=False)
                T.copy(c, C)
                T.copy(s, S)

        return kernel

    (a,) = inputs((64, 128))
    products = [part @ part.T for part in np.split(a, 2, axis=1)]
    last = products[1] if clears else sum(products)
    ex = ttx.explore(kernel(T.alloc_fragment))
    assert ex.error is None, str(ex.error)
    assert ex.check([a])
    for run in (ex.run([a]), ex.run([a], backend="emulator")):
        np.testing.assert_array_equal(run.outputs[0], last)
        np.testing.assert_array_equal(run.outputs[1], (products[0] + last).sum(1))
    assert "a race for c: " in error_of(kernel(T.alloc_tmem)).message


def test_two_writers_of_one_tensor() -> None:
    def write(A, B, a, f, bar):
        g = T.alloc_fragment((64, 64), FP32)
        with T.ws(0):
            T.copy(A, f)
            T.copy(f, B)
        with T.ws(1):
            T.copy(A, g)
            T.copy(g, B)

    assert "a race for B: " in refused(write).message


def test_threads_that_do_something_else_each() -> None:
    def write(A, B, a, f, bar):
        tx = T.get_thread_binding()
        if tx < 128:
            T.copy(A, a)
            a[tx, 0] = 1.0
        T.sync_threads()
        T.copy(a, B)

    error = refused(write)
    assert isinstance(error, Unsupported)
    what = "an operation of the whole block in a branch that only some threads take"
    assert error.message == f"{what} is not lowered"
    assert "T.Parallel" in str(error.hint)


def test_a_branch_by_more_than_the_thread() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(2, threads=256) as bx:
            a = T.alloc_shared((32, 64), FP32)
            tx = T.get_thread_binding()
            if tx < 128 and bx > 0:
                T.copy(A[bx * 32, 0], a)
                T.copy(a, B[bx * 32, 0])

    error = error_of(kernel)
    assert "an operation of the whole block in a branch that only some threads take" in error.message


def test_a_length_that_is_known_only_at_run_time() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), FP32)
            bar = T.alloc_barrier(128)
            for k in range(T.ceildiv(n, 64)):
                with T.ws(0):
                    T.copy(A[k * 64, 0], a)
                    T.barrier_arrive(bar)
                with T.ws(1):
                    T.barrier_wait(bar, k % 2)
                    T.copy(a, B)

    error = error_of(kernel)
    assert isinstance(error, Unsupported)
    assert "is known only when the kernel runs" in error.message


def test_lengths_that_a_block_decides_are_proved_for_each() -> None:
    def triangle(parity: int) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((192, 64), FP32), B: T.Tensor((192, 64), FP32)):
            with T.Kernel(3, threads=256) as bx:
                a = T.alloc_shared((64, 64), FP32)
                c = T.alloc_fragment((64, 64), FP32)
                full = T.alloc_barrier(128)
                empty = T.alloc_barrier(128)
                with T.ws(1):
                    T.clear(c)
                for k in range(bx + 1):
                    with T.ws(0):
                        T.barrier_wait(empty, (k + 1) % 2)
                        T.tma_copy(A[k * 64 : k * 64 + 64, :], a, barrier=full)
                        T.barrier_arrive(full)
                    with T.ws(1):
                        T.barrier_wait(full, T.if_then_else(k < 2, k % 2, parity))
                        for i, j in T.Parallel(64, 64):
                            c[i, j] += a[i, j]
                        T.barrier_arrive(empty)
                with T.ws(1):
                    T.copy(c, B[bx * 64, 0])

        return kernel

    (a,) = inputs((192, 64))
    ex = ttx.explore(triangle(0))
    assert ex.error is None
    wanted = np.cumsum(a.reshape(3, 64, 64), axis=0).reshape(192, 64)
    assert ex.check([a])
    np.testing.assert_array_equal(ex.run([a]).outputs[0], wanted)
    # Only the last block comes so far.
    assert "a race for a" in error_of(triangle(1)).message


def test_groups_by_number_and_expected_bytes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), FP32)
            bar = T.alloc_barrier(128)
            if T.get_warp_group_idx() == 0:
                T.tma_copy(A[0:64, 0:64], a, barrier=bar)
                T.mbarrier_arrive_expect_tx(bar, 64 * 64 * 4)
            else:
                T.barrier_wait(bar, 0)
                T.copy(a, B)

    (a,) = inputs((64, 64))
    ex = ttx.explore(kernel)
    assert ex.check([a])
    np.testing.assert_array_equal(ex.run([a]).outputs[0], a)


def test_threads_that_all_do_the_same() -> None:
    """They need no proof, and lengths that are known only when the kernel runs."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), FP32)
            c = T.alloc_fragment((64, 64), FP32)
            tx = T.get_thread_binding()
            T.clear(c)
            for k in range(T.ceildiv(n, 64)):
                T.copy(A[k * 64, 0], a)
                T.sync_threads()
                for i, j in T.Parallel(64, 64):
                    c[i, j] += a[i, j]
            T.copy(c, B)

    (a,) = inputs((192, 64))
    ex = ttx.explore(kernel)
    assert ex.error is None, str(ex.error)
    assert ex.check([a])
    np.testing.assert_array_equal(ex.run([a]).outputs[0], a.reshape(3, 64, 64).sum(0))


def test_one_thread_of_all_that_do_the_same() -> None:
    def write(A, B, a, f, bar):
        T.copy(A, a)
        a[T.get_thread_binding(), 0] = 1.0
        T.copy(a, B)

    assert refused(write).message == "a has 64 elements along axis 0, but tx reaches 255"


def together(arrive_count: int) -> Any:
    """Two groups fill a block together, for a third one."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32)):
        with T.Kernel(1, threads=384) as bx:
            a = T.alloc_shared((64, 64), FP32)
            bar = T.alloc_barrier(arrive_count)
            with T.ws(0, 1):
                T.copy(A, a)
            with T.ws(*range(arrive_count // 128)):
                T.barrier_arrive(bar)
            with T.ws(2):
                T.barrier_wait(bar, 0)
                T.copy(a, B)

    return kernel


def test_groups_that_fill_a_block_together() -> None:
    (a,) = inputs((64, 64))
    ex = ttx.explore(together(256))
    assert ex.check([a])
    np.testing.assert_array_equal(ex.run([a]).outputs[0], a)
    # The arrival of one of them says nothing of the other one.
    assert error_of(together(128)).message.startswith("a race for a")


def test_what_all_do_tells_nothing_of_other_blocks() -> None:
    def write(A, B, a, f, bar):
        other = T.alloc_shared((64, 64), FP32)
        with T.ws(0):
            T.copy(A, a)
        T.copy(A, other)
        with T.ws(1):
            T.copy(a, B)

    assert refused(write).message.startswith("a race for a")


def test_slots_that_live_longer_than_a_turn() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), FP32), B: T.Tensor((128, 64), FP32)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((2, 64, 64), FP32)
            bar = T.alloc_barrier(128)
            with T.ws(0):
                for k in range(2):
                    T.copy(A[k * 64, 0], a[k, :, :])
                T.barrier_arrive(bar)
            with T.ws(1):
                T.barrier_wait(bar, 0)
                for k in range(2):
                    T.copy(a[1 - k, :, :], B[k * 64, 0])

    (a,) = inputs((128, 64))
    ex = ttx.explore(kernel)
    assert ex.check([a])
    assert ex.run(backend="emulator", inputs=[a]).passed
    np.testing.assert_array_equal(ex.reference([a])[0], np.concatenate([a[64:], a[:64]]))


def test_elements_of_slots_that_live_longer_than_a_turn() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), FP32), B: T.Tensor((128, 64), FP32)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((2, 64, 64), FP32)
            f = T.alloc_fragment((64, 64), FP32)
            bar = T.alloc_barrier(128)
            with T.ws(0):
                for k in range(2):
                    T.copy(A[k * 64, 0], a[k, :, :])
                T.barrier_arrive(bar)
            with T.ws(1):
                T.barrier_wait(bar, 0)
                for k in range(2):
                    for i, j in T.Parallel(64, 64):
                        f[i, j] = a[1 - k, i, j] * 2.0
                    T.copy(f, B[k * 64, 0])

    (a,) = inputs((128, 64))
    ex = ttx.explore(kernel)
    assert ex.check([a])
    assert ex.run(backend="emulator", inputs=[a]).passed
    np.testing.assert_array_equal(ex.reference([a])[0], 2 * np.concatenate([a[64:], a[:64]]))
