"""Inputs that cores share: who reads and who receives, what is saved, and that nothing else changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import gemm
from tests.said import said
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.passes.layout_aware_work_partition import shared_inputs
from ttexplore.plan import Plan

RECTANGULAR = {"policy": "rectangular"}


def explored(kernel: Any, target: str = "wormhole_n150", **options: Any) -> Exploration:
    exploration = ttx.explore(kernel, target=target, options=options)
    assert exploration.error is None, str(exploration.error)
    return exploration


def groups(plan: Plan, tensor: str) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """Who receives from whom."""
    (shared,) = (one for one in plan.shared if one.tensor == tensor)
    return {one.sender: one.receivers for one in shared.multicasts}


def test_a_product_reads_rows_and_columns_once() -> None:
    plan = explored(gemm(128, 128, 96, 32, 32, 32), cores=(2, 2), multicast="all", **RECTANGULAR).plan
    assert [(one.tensor, one.buffer, one.topology) for one in plan.shared] == [("A", "a", "row"), ("B", "b", "column")]
    assert groups(plan, "A") == {(0, 0): ((1, 0),), (0, 1): ((1, 1),)}
    assert groups(plan, "B") == {(0, 0): ((0, 1),), (1, 0): ((1, 1),)}
    assert plan.semaphores == ((0, "A_ready"), (1, "A_valid"), (2, "B_ready"), (3, "B_valid"))
    for one in plan.shared:
        assert one.read_bytes == 4 * 4 * 3 * 2048
        assert one.saved_bytes == one.read_bytes // 2


def test_the_bytes_of_a_large_product() -> None:
    """1024^3 on 64 cores: every core would read 8 times what there is."""
    plan = explored(gemm(1024, 1024, 1024, 128, 128, 64), cores=(8, 8), multicast="all", **RECTANGULAR).plan
    assert [(one.read_bytes, one.saved_bytes) for one in plan.shared] == [(1 << 24, (1 << 24) * 7 // 8)] * 2


def test_parts_of_rows() -> None:
    """Of three columns of cores one has more blocks, and shares with nobody in its row."""
    plan = explored(gemm(64, 128, 64, 32, 32, 32), cores=(3, 2), multicast="all", **RECTANGULAR).plan
    assert groups(plan, "A") == {(0, 0): (), (1, 0): ((2, 0),), (0, 1): (), (1, 1): ((2, 1),)}
    assert groups(plan, "B") == {(x, 0): ((x, 1),) for x in range(3)}


def test_cores_with_gaps_between_them() -> None:
    """The first item of each core: no rectangle reaches over a core that has no work."""
    options: dict[str, Any] = {
        "core_ranges": [((0, 0), (1, 1)), ((3, 0), (4, 1))],
        "policy": "strided",
        "multicast": {"B": "grid"},
    }
    exploration = explored(gemm(256, 32, 64, 32, 32, 32), **options)
    assert groups(exploration.plan, "B") == {
        (0, 0): ((1, 0), (0, 1), (1, 1)), (3, 0): ((4, 0), (3, 1), (4, 1)),
    }  # fmt: skip
    assert exploration.check()
    assert exploration.run().passed


def gathered_heads() -> Any:
    """Two heads of queries have one head of keys: blocks with different indices need the same block."""

    @T.prim_func
    def kernel(Q: T.Tensor((4, 32, 32), "bfloat16"), K: T.Tensor((2, 32, 32), "bfloat16"),
               C: T.Tensor((4, 32, 32), "bfloat16")):  # fmt: skip
        with T.Kernel(4) as bx:
            q, k = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(Q[bx, 0, 0], q)
            T.copy(K[bx // 2, 0, 0], k)
            T.clear(c)
            T.gemm(q, k, c)
            T.copy(c, C[bx, 0, 0])

    return kernel


def test_what_blocks_are_needed_follows_from_the_index() -> None:
    exploration = explored(gathered_heads(), cores=(4, 1), multicast="all")
    assert groups(exploration.plan, "K") == {(0, 0): ((1, 0),), (2, 0): ((3, 0),)}
    assert "Q is not shared: no two cores need the same blocks at the same steps" in said(exploration.plan)
    assert exploration.check()


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((64, 64, 96), {"cores": (2, 2), **RECTANGULAR}),
        ((64, 128, 64), {"cores": (3, 2), **RECTANGULAR}),
        ((192, 64, 64), {"cores": (2, 3), "core_offset": (1, 2), **RECTANGULAR}),
        ((128, 128, 64), {"cores": (2, 2)}),
        ((128, 128, 64), {"cores": (4, 1), "policy": "strided"}),
        ((96, 160, 96), {"cores": (3, 2), **RECTANGULAR}),
        ((128, 128, 64), {"cores": (2, 2), "policy": "z_order", "stages": 3}),
    ],
)
def test_every_step_and_the_emulator_agree(target: str, shape: tuple[int, int, int], options: dict[str, Any]) -> None:
    """The interpreter after each step gives the reference, the emulator the bits of a run without sharing."""
    kernel = gemm(*shape, 32, 32, 32)
    shared, alone = explored(kernel, target, multicast="all", **options), explored(kernel, target, **options)
    assert shared.plan.shared
    check = shared.check()
    assert check, str(check)
    ran = shared.run()
    assert ran.passed, ran.message
    assert ran.outputs[0].tobytes() == alone.run().outputs[0].tobytes()


def test_blocks_of_chunks_and_of_padding() -> None:
    """Several blocks under way, the last of which lie partly outside."""
    options: dict[str, Any] = {"cores": (2, 2), **RECTANGULAR, "chunk_k_tiles": 8}
    kernel = gemm(96, 96, 160, 64, 64, 128)
    shared, alone = explored(kernel, multicast="all", **options), explored(kernel, **options)
    assert {one.tensor for one in shared.plan.shared} == {"A", "B"}
    assert "noc.async_write_zeros" in shared.code["reader"].text
    assert shared.check()
    assert shared.run().outputs[0].tobytes() == alone.run().outputs[0].tobytes()


def cut_off() -> Any:
    """A product whose last blocks have two columns of tiles outside."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), B: T.Tensor((32, 320), "bfloat16"),
               C: T.Tensor((64, 320), "bfloat16")):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 192), "bfloat16")
            c = T.alloc_fragment((32, 192), "float32")
            T.clear(c)
            T.copy(A[by * 32, 0], a)
            T.copy(B[0, bx * 192], b)
            T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 192])

    return kernel


def test_a_sender_fills_what_lies_outside() -> None:
    """Each tile of the block is read or filled with zeros, in a loop that only senders run."""
    shared = explored(cut_off(), cores=(2, 2), multicast={"B": "column"})
    assert shared.plan.shared
    assert shared.check()
    assert shared.run().outputs[0].tobytes() == explored(cut_off(), cores=(2, 2)).run().outputs[0].tobytes()


def test_the_host_asks_the_device_for_places() -> None:
    exploration = explored(gemm(64, 64, 64, 32, 32, 32), cores=(2, 2), multicast="all", **RECTANGULAR)
    host, signature = exploration.code["host"].text, exploration.plan.kernel_signature("reader")
    assert "if (CreateSemaphore(program, all, 0) != 3)" in host
    assert "noc_x(1, 0), noc_y(1, 0)" in host
    assert ("A_first_x", "noc_x", "A_first") in [(one.name, one.source, one.of) for one in signature.runtime]


def product_of_sizes() -> Any:
    """A product whose tensors are called as the values that the host gives for sizes begin."""

    @T.prim_func
    def kernel(size_a: T.Tensor((64, 64), "bfloat16"), size_t: T.Tensor((64, 96), "bfloat16"),
               C: T.Tensor((64, 96), "float32")):  # fmt: skip
        with T.Kernel(3, 2) as (bx, by):
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(size_a[by * 32, k * 32], a)
                T.copy(size_t[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return kernel


@pytest.mark.parametrize(
    ("options", "sharing"),
    [
        ({"cores": (3, 2), **RECTANGULAR}, {"size_a", "size_t"}),
        ({"policy": "contiguous", "cores": (3, 1)}, set[str]()),
        ({"policy": "strided", "cores": (3, 1)}, {"size_a"}),
        ({"policy": "block_linear(2)", "cores": (6, 1)}, {"size_a", "size_t"}),
        ({"policy": "z_order", "cores": (2, 3)}, {"size_a", "size_t"}),
        ({"policy": "explicit", "work_lists": {(0, 0): [5, 0], (1, 0): [4, 1], (1, 1): [2, 3]}}, {"size_a"}),
        (
            {"policy": "match_shard", "match": "C", "layouts": {"C": {"shard": "width", "grid": 3}}},
            {"size_a"},
        ),
        (
            {"policy": "match_shard", "match": "C", "layouts": {"C": {"shard": "height", "grid": 2}},
             "mode": "local_shard"},
            {"size_t"},
        ),
    ],
)  # fmt: skip
def test_numbers_under_every_policy(options: dict[str, Any], sharing: set[str]) -> None:
    """What a core value is called says nothing: a sender that was taken for a size seemed never to be 0."""
    exploration = explored(product_of_sizes(), multicast="all", **options)
    assert {one.tensor for one in exploration.plan.shared} == sharing
    draw = np.random.default_rng(3)
    a, b = (draw.integers(-8, 9, shape).astype(bfloat16) for shape in ((64, 64), (64, 96)))
    check = exploration.check([a, b])
    assert check, str(check)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(exploration.run([a, b]).outputs[0], expected)


def test_off_shares_nothing() -> None:
    off = explored(gemm(1024, 1024, 512, 128, 128, 64), multicast="off")
    assert off.plan.shared == ()
    assert "Semaphore" not in off.code["reader"].text


def stored_to() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            T.copy(A, a)
            T.copy(C[bx * 32, 0], b)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + b[i, j]
            if bx < 1:
                T.copy(A, b)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] + b[i, j]
            T.copy(a, C[bx * 32, 0])

    return kernel


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ("row", "there is no multicast 'row'", 'use one of auto, all, off, or name tensors, as in {"A": "row"}'),
        ("alll", "there is no multicast 'alll'",
         'did you mean all? use one of auto, all, off, or name tensors, as in {"A": "row"}'),
        (True, "multicast is True",
         "multicast takes one of auto, all, off, or a dictionary keyed by the names of tensors, "
         'for example {"A": "row"}'),
    ],
)  # fmt: skip
def test_hints_name_all_that_multicast_takes(given: object, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        ttx.explore(gemm(64, 64, 64, 32, 32, 32), options={"multicast": given})
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (gemm(64, 64, 64, 32, 32, 32), {"multicast": "on"}, "there is no multicast 'on'"),
        (gemm(64, 64, 64, 32, 32, 32), {"multicast": {"A": "diagonal"}}, "there is no topology 'diagonal'"),
        (gemm(64, 64, 64, 32, 32, 32), {"multicast": {"Z": "row"}}, "there is no tensor 'Z'"),
        (gemm(64, 64, 64, 32, 32, 32), {"multicast": {"C": "row"}}, "C cannot be shared: the kernel stores to it"),
        (
            gemm(64, 64, 64, 32, 32, 32), {"multicast": {"A": "column"}, "cores": (2, 2)},
            "A cannot be shared: no two cores in one column of cores need the same blocks at the same steps",
        ),
        (
            gemm(64, 64, 64, 32, 32, 32), {"multicast": {"A": "row"}, "layouts": {"A": "L1"}},
            "A cannot be shared: it lies in L1",
        ),
        (
            gemm(64, 64, 64, 32, 32, 32), {"multicast": {"A": "row"}, "layouts": {"A": {"page": "row"}}},
            "A cannot be shared: it is row-major",
        ),
        (stored_to(), {"multicast": {"C": "row"}}, "C cannot be shared: the kernel stores to it"),
        (stored_to(), {"multicast": {"A": "row"}}, "A cannot be shared: 2 statements read it, instead of one"),
    ],
)  # fmt: skip
def test_what_is_not_shared(kernel: Any, options: dict[str, Any], message: str) -> None:
    try:
        error: TTExploreError | None = ttx.explore(kernel, options=options).error
    except TTExploreError as refused:
        error = refused
    assert isinstance(error, UsageError), repr(error)
    assert str(error).startswith(message)
    assert error.hint


def test_all_says_why_not() -> None:
    plan = explored(stored_to(), multicast="all").plan
    assert plan.shared == ()
    assert "A is not shared: 2 statements read it, instead of one" in said(plan)
    assert "C is not shared: the kernel stores to it" in said(plan)


def test_auto_shares_what_shortens_the_time() -> None:
    """Cores read each block of A and B eight times from DRAM, or once."""
    plan = explored(gemm(1024, 1024, 512, 128, 128, 64)).plan
    assert [(one.tensor, one.topology) for one in plan.shared] == [("A", "row"), ("B", "column")]
    note = next(one for one in said(plan) if "predicted" in one)
    assert note.startswith("one core reads for several, A along rows and B along columns: ")
    shared, alone = map(float, re.findall(r"([\d.]+) us", note))
    assert shared < 0.65 * alone


def test_auto_shares_nothing_that_does_not_pay() -> None:
    """The cores wait longer for one another than for DRAM."""
    default, off = explored(gemm(64, 64, 64, 32, 32, 32)), explored(gemm(64, 64, 64, 32, 32, 32), multicast="off")
    assert default.plan.shared == ()
    assert any(note.startswith("A could be shared, which would not pay: ") for note in said(default.plan))
    assert default.code == off.code


def test_auto_shares_some() -> None:
    """Blocks of B are read by one core each."""
    plan = explored(gemm(32, 2048, 1024, 32, 32, 128)).plan
    assert [(one.tensor, one.topology) for one in plan.shared] == [("A", "row")]


def test_the_policy_follows_from_what_is_shared() -> None:
    """8 x 8 blocks on 11 x 10 cores: in rectangles, they lie in 8 rows of 8 cores."""
    kernel = gemm(1024, 1024, 512, 128, 128, 64)
    plan = explored(kernel, "blackhole_p150").plan
    assert plan.partition is not None
    assert plan.partition.policy == "rectangular"
    assert {(core.x, core.y) for core in plan.partition.cores} == {(x, y) for x in range(8) for y in range(8)}
    assert any(note.startswith("the policy is rectangular: ") for note in said(plan))
    assert not any("contiguous, row-major" in note for note in said(plan))
    options: list[dict[str, Any]] = [{"policy": "contiguous"}, {"order": "row_major"}, {"multicast": "off"}]
    for given in options:
        other = explored(kernel, "blackhole_p150", **given).plan.partition
        assert other is not None
        assert other.policy == "contiguous"


def test_time_that_only_a_run_tells_is_no_reason() -> None:
    """How often A is read is an element of N."""

    @T.prim_func
    def kernel(N: T.Tensor((32, 32), "int32"), A: T.Tensor((32, 2048), "bfloat16"),
               C: T.Tensor((2048, 2048), "bfloat16")):  # fmt: skip
        with T.Kernel(64) as bx:
            n = T.alloc_shared((32, 32), "int32")
            a = T.alloc_shared((32, 2048), "bfloat16")
            T.copy(N, n)
            for _ in range(n[0, 0]):
                T.copy(A, a)
                T.copy(a, C[bx * 32, 0])

    plan = explored(kernel).plan
    assert plan.shared == ()
    assert not any("predicted" in note for note in said(plan))


def test_an_annotation_shares() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            T.annotate_tt_schedule(multicast={"A": "row"})
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, C[bx * 32, 0])

    exploration = explored(kernel)
    assert groups(exploration.plan, "A") == {(0, 0): ((1, 0),)}
    run = exploration.run()
    want = np.tile(exploration.inputs()[0].astype(np.float32) + 1.0, (2, 1))
    np.testing.assert_allclose(run.outputs[0].astype(np.float32), want, rtol=2**-8)


def broadcast() -> Any:
    """One block for all work items."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((128, 32), "bfloat16")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A, a)
            T.copy(a, C[bx * 32, 0])

    return kernel


def named_alike() -> Any:
    """Inputs whose names end as those of core values and semaphores do."""

    @T.prim_func
    def kernel(x: T.Tensor((32, 32), "bfloat16"), x_last: T.Tensor((32, 32), "bfloat16"),
               x_first: T.Tensor((32, 32), "bfloat16"), x_sender: T.Tensor((32, 32), "bfloat16"),
               x_ready: T.Tensor((32, 32), "bfloat16"), x_sends: T.Tensor((32, 32), "bfloat16"),
               x_last_x: T.Tensor((128, 32), "bfloat16")):  # fmt: skip
        with T.Kernel(4) as bx:
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            c, d = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            e, f = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            T.copy(x, a)
            T.copy(x_last, b)
            T.copy(x_first, c)
            T.copy(x_sender, d)
            T.copy(x_ready, e)
            T.copy(x_sends, f)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + b[i, j] + c[i, j] + d[i, j] + e[i, j] + f[i, j]
            T.copy(a, x_last_x[bx * 32, 0])

    return kernel


def test_names_of_tensors_mean_nothing() -> None:
    exploration = explored(named_alike(), cores=(2, 1), multicast="all")
    assert [one.tensor for one in exploration.plan.shared] == [
        "x", "x_last", "x_first", "x_sender", "x_ready", "x_sends",
    ]  # fmt: skip
    runtime = exploration.plan.kernel_signature("reader").runtime
    places = {
        f"{shared.tensor}_{place}_{axis}": (f"noc_{axis}", f"{shared.tensor}_{place}")
        for shared in exploration.plan.shared
        for place in ("sender", "first", "last")
        for axis in "xy"
    }
    assert {one.name: (one.source, one.of) for one in runtime if one.source != "core_value"} == places
    assert exploration.check()
    assert exploration.run().passed


def test_a_dictionary_names_all_that_is_shared() -> None:
    kernel = gemm(64, 64, 64, 32, 32, 32)
    options: dict[str, Any] = {"cores": (2, 2), **RECTANGULAR}
    assert [one.tensor for one in explored(kernel, multicast={"A": "row"}, **options).plan.shared] == ["A"]
    none = explored(kernel, multicast={}, **options)
    assert none.plan.shared == ()
    assert none.code["reader"].text == explored(kernel, **options).code["reader"].text


@pytest.mark.parametrize(
    "cores",
    [
        {"work_lists": {(1, 0): [0, 1], (0, 0): [2, 3]}},
        {"core_ranges": [((1, 0), (1, 0)), ((0, 0), (0, 0))]},
        {"core_ranges": [((0, 1), (1, 1)), ((0, 0), (1, 0))]},
    ],
)
def test_cores_in_any_order(cores: dict[str, Any]) -> None:
    """A receiver that is planned before its sender finds it started."""
    exploration = explored(broadcast(), multicast={"A": "grid"}, **cores)
    assert len(groups(exploration.plan, "A")) == 1
    check = exploration.check()
    assert check, str(check)
    assert exploration.run().passed


@pytest.mark.parametrize("multicast", ["all", {"A": "grid", "B": "grid"}])
def test_a_tile_has_the_same_history(multicast: str | dict[str, str]) -> None:
    """What a receiver got comes from the pages that the sender read."""
    kernel = gemm(64, 64, 64, 32, 32, 32)
    options: dict[str, Any] = {"cores": (2, 2), **RECTANGULAR}
    shared, alone = explored(kernel, multicast=multicast, **options), explored(kernel, **options)
    assert shared.plan.shared
    for tile in ((0, 0), (1, 1)):
        history, wanted = shared.tile("C", *tile), alone.tile("C", *tile)
        assert history.exact
        assert history.pages == wanted.pages == {"A": ((tile[0], 0), (tile[0], 1)), "B": ((0, tile[1]), (1, tile[1]))}


def in_two_launches() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((128, 32), "bfloat16"),
               C: T.Tensor((128, 32), "bfloat16")):  # fmt: skip
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A, a)
            T.copy(a, B[bx * 32, 0])
        with T.Kernel(4) as bx:
            b = T.alloc_shared((32, 32), "bfloat16")
            T.copy(B[32, 0], b)
            T.copy(b, C[bx * 32, 0])

    return kernel


@pytest.mark.parametrize(
    ("request_", "shared"),
    [
        ("all", [["A"], ["B"]]),
        ({"A": "row"}, [["A"], []]),
        ({"B": "row"}, [[], ["B"]]),
        ({"A": "row", "B": "row"}, [["A"], ["B"]]),
        ({}, [[], []]),
    ],
)
def test_launches_share_their_own_inputs(request_: str | dict[str, str], shared: list[list[str]]) -> None:
    exploration = explored(in_two_launches(), cores=(2, 1), multicast=request_)
    assert len(exploration.launches) > 1
    assert [[one.tensor for one in launch.plan.shared] for launch in exploration.launches] == shared
    assert exploration.run().passed


@pytest.mark.parametrize(
    ("name", "message"),
    [("C", "C cannot be shared: the kernel stores to it"), ("Z", "there is no tensor 'Z'")],
)
def test_what_no_launch_can_share(name: str, message: str) -> None:
    error = ttx.explore(in_two_launches(), options={"cores": (2, 1), "multicast": {name: "row"}}).error
    assert isinstance(error, UsageError)
    assert str(error).startswith(message)


def test_the_bytes_of_a_block_of_rows_from_several_tiles() -> None:
    """A head of keys fills one page, though its rows lie in 32 tiles of the tensor."""

    @T.prim_func
    def kernel(K: T.Tensor((1, 64, 2, 32), "bfloat16"), C: T.Tensor((128, 32), "bfloat16")):
        with T.Kernel(4) as bx:
            k = T.alloc_shared((32, 32), "bfloat16")
            T.copy(K[0, 0:32, 1, 0:32], k)
            T.copy(k, C[bx * 32, 0])

    (shared,) = explored(kernel, cores=(4, 1), multicast="all").plan.shared
    assert (shared.read_bytes, shared.saved_bytes) == (4 * 2048, 3 * 2048)


def test_reasons_why_not() -> None:
    @T.prim_func
    def kernel(N: T.Tensor((4,), "int32"), A: T.Tensor((128, 32), "bfloat16"), B: T.Tensor((128, 32), "bfloat16"),
               D: T.Tensor((32, 32), "bfloat16"), E: T.Tensor((128, 32), "bfloat16"),
               F: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((128, 32), "bfloat16")):  # fmt: skip
        with T.Kernel(4) as bx:
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            d, e = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            T.copy(E[N[0] * 32, 0], e)
            for k in T.serial(bx + 1):
                T.copy(A[k * 32, 0], a)
                T.gemm(a, e, c)
            for k in T.serial(4):
                T.copy(B[k * 32, 0], b)
                if bx < 2:
                    T.copy(D, d)
                    T.gemm(d, b, c)
            T.copy(c, C[bx * 32, 0])

    plan = explored(kernel, cores=(2, 1), multicast="all").plan
    assert [one.tensor for one in plan.shared] == ["B"]
    for note in (
        "A is not shared: it is read under a condition, or in a loop whose length varies",
        "D is not shared: it is read under a condition, or in a loop whose length varies",
        "E is not shared: what is read of it is known only when the kernel runs",
        "F is not shared: no statement reads it",
    ):
        assert note in said(plan)


def test_all_work_items_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grouping that ignores the third work item is found, far from the first turns."""

    @T.prim_func
    def kernel(A: T.Tensor((96, 32), "bfloat16"), C: T.Tensor((192, 32), "bfloat16")):
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[(bx % 3) * (1 - bx // 5) * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, C[bx * 32, 0])

    options: dict[str, Any] = {"cores": (2, 1), "multicast": "all"}
    assert explored(kernel, **options).plan.shared == ()
    needed = shared_inputs._needed
    monkeypatch.setattr(
        shared_inputs, "_needed", lambda *given: {core: blocks[:2] for core, blocks in needed(*given).items()}
    )
    error = ttx.explore(kernel, options=options).error
    assert error is not None
    assert error.message.startswith("core (0, 0) sends page 2 of a_in to core (1, 0), which needs page 0")
