"""Partial sums that cores hand on to one another: who to whom, the sums against NumPy, and what cannot be sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import copy_block
from tests.corpus.sums import split_k, sums_of_columns, sums_of_found_rows, sums_of_heads
from tests.said import said
from ttexplore.errors import ResourceError, TTExploreError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.plan import PartialSums

BF16 = "bfloat16"
Array = NDArray[Any]
Core = tuple[int, int]


def explored(kernel: Any, target: str = "wormhole_n150", **options: Any) -> Exploration:
    exploration = ttx.explore(kernel, target=target, options={"partials": "noc", **options})
    assert exploration.error is None, str(exploration.error)
    return exploration


def sums_of(exploration: Exploration, tensor: str = "C") -> PartialSums:
    return next(one for one in exploration.plan.partials if one.tensor == tensor)


# Who hands on to whom


def test_a_chain_for_each_block() -> None:
    """Four blocks of the result, each the sum of two work items: the items of the first half come first."""
    exploration = explored(split_k(64, 64, 128, 2), cores=(4, 2))
    sums = sums_of(exploration)
    assert sums.chains == tuple(((x, 0), (x, 1)) for x in range(4))
    assert sums.steps == (1, 1, 1, 1)
    assert sums.sent_bytes == 4 * 32 * 32 * 4
    assert exploration.plan.semaphores == ((0, "C_room"), (1, "C_arrived"))
    assert {core: (values["C_receives"], values["C_sends"]) for core, values in sums.core_values.items()} == {
        (x, y): (y, 1 - y) for x in range(4) for y in range(2)
    }
    (line,) = (line for line in repr(exploration.plan).splitlines() if line.startswith("  partials"))
    assert line.split(maxsplit=1)[1] == (
        "C: handed on by up to 2 cores, in the order of their work items; 16,384 bytes sent"
    )


def test_a_core_may_have_several_blocks() -> None:
    """Two cores, each with all four blocks."""
    sums = sums_of(explored(split_k(64, 64, 128, 2), cores=(2, 1)))
    assert sums.chains == (((0, 0), (1, 0)),)
    assert sums.steps == (4,)
    assert sums.sent_bytes == 4 * 32 * 32 * 4


def test_the_first_work_item_is_added_first() -> None:
    """A chain follows the work items of its cores, not where these lie."""
    lists = {(3, 0): [0], (1, 0): [1], (2, 0): [2], (0, 0): [3]}
    sums = sums_of(explored(split_k(32, 32, 128, 4), work_lists=lists))
    assert sums.chains == (((3, 0), (1, 0), (2, 0), (0, 0)),)


def test_tensors_have_chains_of_their_own() -> None:
    exploration = explored(sums_of_heads(2, 2, 2), cores=(4, 1))
    # Q: a core of each head after another; K: those of a group, by rows.
    assert sums_of(exploration, "Q").chains == (((0, 0), (2, 0)), ((1, 0), (3, 0)))
    assert sums_of(exploration, "K").chains == (((0, 0), (1, 0)), ((2, 0), (3, 0)))
    assert [name for _, name in exploration.plan.semaphores] == ["Q_room", "Q_arrived", "K_room", "K_arrived"]


def test_the_writers_hand_on() -> None:
    """Each says that it has room before it waits, and that a block came only when it has arrived."""
    text = explored(split_k(32, 32, 128, 4), cores=(4, 1)).code["writer"].text
    order = [
        "C_block_buffer.reserve_back(", "C_arrived.set(0)", "C_room.up(noc, C_previous_x, C_previous_y, 1)",
        "C_arrived.wait(1)", "C_block_buffer.push_back(", "C_block_2_buffer.wait_front(", "C_room.wait(1)",
        "C_room.set(0)", "noc.async_write(C_block_2_buffer, UnicastEndpoint{}", "noc.async_write_barrier()",
        "C_arrived.up(noc, C_next_x, C_next_y, 1)", "C_block_2_buffer.pop_front(", "noc.async_full_barrier()",
    ]  # fmt: skip
    places = [text.index(one) for one in order]
    assert places == sorted(places)


def test_shared_inputs_have_other_semaphores() -> None:
    plan = explored(split_k(64, 64, 128, 2), cores=(4, 2), multicast="all").plan
    assert plan.shared
    assert [number for number, _ in plan.semaphores] == [*range(2 + 2 * len(plan.shared))]


def test_the_notes_and_the_map_say_who_adds() -> None:
    exploration = explored(split_k(32, 32, 128, 4), cores=(4, 1))
    assert (
        "C: cores add to each block one after another, in the order of their work items; the first one reads it, the "
        "last one stores it"
    ) in said(exploration.plan)
    assert "C: handed on from core to core, by up to 4 cores, 12,288 bytes sent" in exploration.core_map.svg


@pytest.mark.parametrize("kernel", [sums_of_heads(1, 1, 1), sums_of_found_rows()], ids=["one item", "found places"])
def test_nothing_is_sent_where_nobody_shares(kernel: Any) -> None:
    plan = explored(kernel).plan
    assert plan.partials == ()
    assert "no partial sums are sent: no two work items update the same elements at known places" in said(plan)


def two_kinds() -> Any:
    """Each block is added to one of C, which all work items share, and to one of D, in turns of their own."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 64, 32), "float32"), C: T.Tensor((64, 32), "float32"),
               D: T.Tensor((2, 64, 32), "float32")):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[by, bx * 32, 0], a)
            T.atomic_add(C[bx * 32, 0], a)
            T.atomic_add(D[by, bx * 32, 0], a)

    return kernel


# The sums


def uneven() -> Any:
    """A product whose parts are of 1, 2, 3 and 4 tiles, and the largest of them."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 320), BF16), B: T.Tensor((320, 64), BF16), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 1, 4) as (bx, by, bz):
            a, b = T.alloc_shared((64, 32), BF16), T.alloc_shared((32, 32), BF16)
            c = T.alloc_fragment((64, 32), "float32")
            T.clear(c)
            for ko in T.serial(bz + 1):
                T.copy(A[by * 64, (bz * (bz + 1) // 2 + ko) * 32], a)
                T.copy(B[(bz * (bz + 1) // 2 + ko) * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.atomic_add(C[by * 64, bx * 32], c)

    return kernel


def joined(dtype: str, how: Callable[..., Any] = T.atomic_add, *, blocks: int = 3, group: int = 2) -> Any:
    """Blocks of 64 x 96, `group` of which go to each block of C, the last one perhaps fewer."""
    groups = -(-blocks // group)

    @T.prim_func
    def kernel(A: T.Tensor((blocks, 64, 96), dtype), C: T.Tensor((groups, 64, 96), dtype)):
        with T.Kernel(blocks) as bx:
            a = T.alloc_shared((64, 96), dtype)
            T.copy(A[bx, 0, 0], a)
            how(C[bx // group, 0, 0], a)

    return kernel


def of_joined(a: Array, c: Array, how: Any = np.add, group: int = 2) -> Array:
    for number, block in enumerate(a):
        c[number // group] = how(c[number // group], block)
    return c


# Each with what NumPy makes of the inputs, and these in float64.
SUMS: dict[str, tuple[Callable[[], Any], dict[str, Any], Callable[..., list[Array]]]] = {
    "one block": (lambda: split_k(32, 32, 128, 4), {"cores": (4, 1)}, lambda a, b, c: [c + a @ b]),
    "one block, 16 bits": (lambda: split_k(32, 32, 128, 4, BF16), {"cores": (2, 2)}, lambda a, b, c: [c + a @ b]),
    "four blocks": (lambda: split_k(64, 64, 128, 2), {"cores": (4, 2)}, lambda a, b, c: [c + a @ b]),
    "two blocks for each core": (lambda: split_k(64, 64, 128, 2), {"cores": (2, 2)}, lambda a, b, c: [c + a @ b]),
    "four blocks for each core, column by column": (
        lambda: split_k(64, 64, 256, 2), {"cores": (2, 1)}, lambda a, b, c: [c + a @ b]),
    "tails": (lambda: split_k(70, 40, 256, 4), {"cores": (8, 3)}, lambda a, b, c: [c + a @ b]),
    "tails, 16 bits": (lambda: split_k(70, 40, 256, 4, BF16), {"cores": (8, 3)}, lambda a, b, c: [c + a @ b]),
    "all that is shared": (
        lambda: split_k(64, 64, 256, 4), {"cores": (4, 4), "multicast": "all"}, lambda a, b, c: [c + a @ b]),
    "sixteen parts": (lambda: split_k(32, 64, 512, 16), {"cores": (8, 4)}, lambda a, b, c: [c + a @ b]),
    "gaps between the cores": (
        lambda: split_k(32, 64, 128, 2), {"core_ranges": [((0, 0), (0, 1)), ((4, 2), (5, 2))]},
        lambda a, b, c: [c + a @ b]),
    "parts of unequal length": (uneven, {"cores": (8, 1)}, lambda a, b, c: [c + a @ b]),
    "chains of unequal length": (lambda: joined("float32"), {"cores": (3, 1)}, lambda a, c: [of_joined(a, c)]),
    "integers": (lambda: joined("int32"), {"cores": (3, 1)}, lambda a, c: [of_joined(a, c)]),
    "16 bits": (lambda: joined(BF16, blocks=8, group=4), {"cores": (8, 1)}, lambda a, c: [of_joined(a, c, group=4)]),
    "maxima": (lambda: joined("float32", T.atomic_max), {"cores": (3, 1)}, lambda a, c: [of_joined(a, c, np.maximum)]),
    "minima of integers": (
        lambda: joined("int32", T.atomic_min, blocks=4), {"cores": (2, 2)}, lambda a, c: [of_joined(a, c, np.minimum)]),
    "two tensors": (
        lambda: sums_of_heads(2, 2, 2), {"cores": (4, 1)},
        lambda a, q, k: [heads(a, q), k + a.sum(0, keepdims=True)]),
    "two tensors, integers": (
        lambda: sums_of_heads(2, 2, 2, "int32"), {"cores": (2, 2)},
        lambda a, q, k: [heads(a, q), k + a.sum(0, keepdims=True)]),
    "a vector, with tails": (
        lambda: sums_of_columns(96, 70), {"cores": (3, 1)}, lambda a, s, m: [s + a.sum(0), np.maximum(a, m)]),
    "one tensor on several cores, one on one": (
        two_kinds, {"cores": (2, 1)}, lambda a, c, d: [c + a.sum(0), d + a]),
}  # fmt: skip


def heads(a: Array, q: Array) -> Array:
    """Each block of rows of a head, times 1, 2, ..., is added to the first, second, ... block of its rows."""
    made = q.copy()
    for head, rows in enumerate(a):
        for block in range(2):
            for k in range(2):
                made[head, k * 32 : (k + 1) * 32] += rows[block * 32 : (block + 1) * 32] * (k + 1)
    return made


def small_numbers(exploration: Exploration) -> list[Array]:
    """Whole numbers, whose sums are exact in every order and every format."""
    numbers = np.random.default_rng(7)
    return [numbers.integers(-1, 2, one.shape).astype(one.dtype) for one in exploration.inputs()]


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_those_of_numpy(name: str, target: str) -> None:
    kernel, options, of_numpy = SUMS[name]
    exploration = explored(kernel(), target, **options)
    assert any(len(chain) > 1 for one in exploration.plan.partials for chain in one.chains)
    given = small_numbers(exploration)
    check = exploration.check(given)
    assert check, str(check)
    expected = of_numpy(*(one.astype(np.float64) for one in given))
    for backend in ("interpreter", "emulator"):
        outputs = exploration.run(given, backend=backend).outputs
        assert len(outputs) == len(expected)
        for found, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(found.astype(np.float64), wanted, err_msg=backend)


@pytest.mark.parametrize("out", ["float32", BF16])
@pytest.mark.parametrize("cores", [(4, 4), (4, 1)])
def test_the_order_is_that_of_one_core(cores: Core, out: str) -> None:
    """Numbers of any size: bit by bit what one core makes that adds up in DRAM, work item by work item."""
    kernel = split_k(64, 64, 256, 4, out)
    handed_on, alone = explored(kernel, cores=cores), explored(kernel, cores=(1, 1), partials="dram")
    assert handed_on.plan.partials
    assert not alone.plan.partials
    given = handed_on.inputs()
    one, other = (exploration.run(given) for exploration in (handed_on, alone))
    assert one.passed, one.message
    assert one.outputs[0].tobytes() == other.outputs[0].tobytes()
    a, b, c = (part.astype(np.float64) for part in given)
    tolerance = {"float32": 2e-2, BF16: 6e-2}[out]
    np.testing.assert_allclose(one.outputs[0].astype(np.float64), c + a @ b, rtol=tolerance, atol=16 * tolerance)


def test_another_order_of_the_cores_is_another_order_of_the_sums() -> None:
    """1 - 2^25 + 2^25 in float32 is 0 or 1, by who comes first; the first one adds to what C holds."""
    kernel = joined("float32", blocks=3, group=3)
    a = np.empty((3, 64, 96), np.float32)
    a[0], a[1], a[2] = 1.0, -(2.0**25), 2.0**25
    c = np.zeros((1, 64, 96), np.float32)
    in_order = {(0, 0): [0], (1, 0): [1], (2, 0): [2]}
    (found,) = explored(kernel, work_lists=in_order, eltwise="sfpu").run([a, c]).outputs
    np.testing.assert_array_equal(found, 0.0)
    # The chain follows the work items, wherever these run.
    turned = {(0, 0): [2], (1, 0): [1], (2, 0): [0]}
    (found,) = explored(kernel, work_lists=turned, eltwise="sfpu").run([a, c]).outputs
    np.testing.assert_array_equal(found, 0.0)


# What cannot be sent


def twice() -> Any:
    """Two statements that add to one tensor."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 32, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx, 0, 0], a)
            T.atomic_add(C[0, 0], a)
            T.atomic_add(C[32, 0], a)

    return kernel


def on_a_condition() -> Any:
    """All but the first work item add to the second block."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 32, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx, 0, 0], a)
            for k in T.serial(T.min(bx, 1) + 1):
                T.atomic_add(C[k * 32, 0], a)

    return kernel


def shifted() -> Any:
    """Blocks that overlap by half."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 64, 32), "float32"), C: T.Tensor((96, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((64, 32), "float32")
            T.copy(A[bx, 0, 0], a)
            T.atomic_add(C[bx * 32, 0], a)

    return kernel


def half_tiles() -> Any:
    """Blocks of 16 rows."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 16, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((16, 32), "float32")
            T.copy(A[by * 2 + bx, 0, 0], a)
            T.atomic_add(C[bx * 16, 0], a)

    return kernel


def many_sums() -> Any:
    """Nine tensors that two cores add to."""
    block = T.Tensor((32, 32), "float32")

    @T.prim_func
    def kernel(A: T.Tensor((2, 32, 32), "float32"), C0: block, C1: block, C2: block, C3: block, C4: block, C5: block,
               C6: block, C7: block, C8: block):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx, 0, 0], a)
            T.atomic_add(C0[0, 0], a)
            T.atomic_add(C1[0, 0], a)
            T.atomic_add(C2[0, 0], a)
            T.atomic_add(C3[0, 0], a)
            T.atomic_add(C4[0, 0], a)
            T.atomic_add(C5[0, 0], a)
            T.atomic_add(C6[0, 0], a)
            T.atomic_add(C7[0, 0], a)
            T.atomic_add(C8[0, 0], a)

    return kernel


EVEN = "give all cores the same number of work items, each for another block"
REFUSED: dict[str, tuple[Callable[[], Any], dict[str, Any], str, str]] = {
    "more parts than cores": (
        lambda: split_k(32, 32, 128, 4), {"cores": (2, 1)},
        "core (0, 0) updates the block at (0, 0) more than once",
        f"{EVEN}, with cores=(4, 1) and the policy contiguous, or use partials='dram'"),
    "an uneven number of work items": (
        lambda: split_k(64, 64, 128, 2), {"cores": (3, 1)},
        "cores (0, 0) and (1, 0) both update the block at (0, 0), but not the same blocks at the same steps",
        f"{EVEN}, with cores=(8, 1) and the policy contiguous, or use partials='dram'"),
    "in L1": (
        lambda: split_k(32, 32, 64, 2), {"layouts": {"C": "L1"}}, "it lies in L1",
        "keep it in DRAM, in tiles, or use partials='dram'"),
    "row-major": (
        lambda: split_k(32, 32, 64, 2), {"layouts": {"C": {"page": "row"}}}, "it is row-major",
        "keep it in DRAM, in tiles, or use partials='dram'"),
    "two statements": (
        twice, {}, "2 statements update it, instead of one",
        "update it once for each work item, with one T.atomic_add, or use partials='dram'"),
    "a loop of several lengths": (
        on_a_condition, {}, "it is updated under a condition, or in a loop whose length varies",
        "update it once for each work item, with one T.atomic_add, or use partials='dram'"),
    "two blocks in a buffer": (
        lambda: split_k(32, 32, 64, 2), {"cb_depth": {"C_block": 2}},
        "C_block holds 2 blocks: only with one do blocks lie at the same address on all cores",
        "set the depth of C_block to 1"),
    "parts of tiles": (
        half_tiles, {}, "its blocks are not whole tiles, or overlap in part",
        "update blocks of multiples of 32 rows and columns that start at multiples of their size, or use "
        "partials='dram'"),
    "blocks that overlap": (
        shifted, {}, "its blocks are not whole tiles, or overlap in part",
        "update blocks of multiples of 32 rows and columns that start at multiples of their size, or use "
        "partials='dram'"),
}  # fmt: skip


def error_of(kernel: Any, **options: Any) -> TTExploreError:
    error = ttx.explore(kernel, options={"partials": "noc", **options}).error
    assert error is not None
    return error


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_sent_is_refused(name: str) -> None:
    kernel, options, reason, hint = REFUSED[name]
    error = error_of(kernel(), **options)
    assert isinstance(error, UsageError)
    assert error.code == "TTX-U025"
    assert error.message == f"partial sums of C cannot be sent: {reason}"
    assert error.hint == hint
    assert error.span is not None
    # The same kernel is lowered where one core adds up.
    fine = ttx.explore(kernel(), options={**options, "partials": "dram"})
    assert fine.error is None, str(fine.error)


def test_semaphores_are_used_up() -> None:
    error = error_of(many_sums())
    assert isinstance(error, ResourceError)
    assert error.code == "TTX-R007"
    assert error.message == "partial sums of 9 tensors need 18 semaphores; wormhole_n150 has 16 per core"
    assert error.hint == "use partials='dram'"


# The choice by predicted time


def auto(kernel: Any, target: str = "wormhole_n150", **options: Any) -> Exploration:
    return explored(kernel, target, partials="auto", **options)


def told(exploration: Exploration) -> list[str]:
    return [note for note in said(exploration.plan) if re.match(r"(one core adds|several cores hand)", note)]


def test_the_choice_is_the_one_or_the_other() -> None:
    """Both times are in the plan, and the program is the one that the option would give."""
    for kernel, target, chosen in (
        (split_k(32, 32, 128, 4), "wormhole_n150", "noc"), (split_k(128, 128, 64, 4), "blackhole_p150", "dram"),
    ):  # fmt: skip
        exploration = auto(kernel, target)
        form = {
            "noc": r"several cores hand on partial sums: [\d.]+ us predicted, [\d.]+ us if one core adds them up",
            "dram": r"one core adds up partial sums: [\d.]+ us predicted, [\d.]+ us if several hand them on",
        }[chosen]
        (note,) = told(exploration)
        assert re.fullmatch(form, note)
        assert bool(exploration.plan.partials) == (chosen == "noc")
        choice = next(one for one in exploration.plan.choices if one.name == "partials")
        assert (choice.chosen, choice.reason) == (chosen, note)
        times = {one.name: f"{one.predicted_us} us" for one in choice.candidates}
        assert re.findall(r"[\d.]+ us", note) == [times.pop(chosen), *times.values()]
        asked = explored(kernel, target, partials=chosen)
        for name in ("reader", "compute", "writer"):
            assert exploration.code[name].text == asked.code[name].text
        assert exploration.steps["A0"].options["partials"] == "auto"
        assert told(asked) == []


def test_what_cannot_be_sent_stays_with_one_core() -> None:
    exploration = auto(split_k(32, 32, 128, 4), cores=(2, 1))
    assert exploration.plan.partials == ()
    assert told(exploration) == [
        "one core adds up partial sums: partial sums of C cannot be sent: core (0, 0) updates the block at (0, 0) more "
        "than once"
    ]
    used_up = auto(many_sums())
    assert told(used_up) == [
        "one core adds up partial sums: partial sums of 9 tensors need 18 semaphores; wormhole_n150 has 16 per core"
    ]


def test_what_has_no_predicted_time_stays_with_one_core() -> None:
    assert told(auto(uneven())) == ["one core adds up partial sums: how long several would take is not known"]


@pytest.mark.parametrize("kernel", [sums_of_heads(1, 1, 1), sums_of_found_rows(), split_k(32, 32, 64, 1)])
def test_nothing_is_chosen_where_nobody_shares(kernel: Any) -> None:
    assert told(auto(kernel)) == []


def test_errors_of_the_kernel_are_reported_by_their_pass() -> None:
    """Not by the choice: what it tries may fail."""
    given = {"cores": (99, 1)}
    errors = [
        ttx.explore(split_k(32, 32, 128, 4), options={**given, "partials": one}).error for one in ("auto", "dram")
    ]
    assert errors[0] is not None
    assert str(errors[0]) == str(errors[1])


def test_other_options_are_another_choice() -> None:
    """A fork with other cores does not take what A0 chose for these."""
    first = auto(split_k(32, 32, 128, 4), cores=(4, 1))
    assert first.plan.partials
    other = first.fork(cores=(2, 1))
    assert other.error is None
    assert other.plan.partials == ()
    assert other.fork(cores=(4, 1)).plan.partials == first.plan.partials
    # What has no sums is not lowered again by A0.
    plain = auto(copy_block())
    assert plain.fork(cores=(2, 1)).steps["A0"].after.kernel.same_as(plain.steps["A0"].after.kernel)


def test_the_sums_of_the_choice() -> None:
    kernel, options, of_numpy = SUMS["sixteen parts"]
    exploration = auto(kernel(), **options)
    assert exploration.plan.partials
    given = small_numbers(exploration)
    (found,) = exploration.run(given).outputs
    (wanted,) = of_numpy(*(one.astype(np.float64) for one in given))
    np.testing.assert_array_equal(found, wanted)
