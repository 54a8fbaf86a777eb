"""Inputs that the writer loads: which, over which NoC, and that nothing else changes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import copy_block, gemm
from tests.said import said
from ttexplore.clock.estimate import Estimate
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.exploration import Exploration

RECTANGULAR: dict[str, Any] = {"policy": "rectangular", "cores": (2, 2)}


def explored(kernel: Any, target: str = "wormhole_n150", **options: Any) -> Exploration:
    exploration = ttx.explore(kernel, target=target, options=options)
    assert exploration.error is None, str(exploration.error)
    return exploration


def test_each_kernel_loads_one_factor() -> None:
    exploration = explored(gemm(64, 64, 64, 32, 32, 32), loaded_by={"B": "writer"})
    plan, code = exploration.plan, exploration.code
    assert {one.name: one.producer for one in plan.buffers} == {"c_out": "compute", "a": "reader", "b": "writer"}
    # As in the SDK's examples, the factors are circular buffers 0 and 1.
    assert [plan.buffer(name).index for name in "ab"] == [0, 1]
    for role, loaded, other in (("reader", "A", "B"), ("writer", "B", "A")):
        assert f"noc.async_read({loaded}," in code[role].text
        assert f"noc.async_read({other}," not in code[role].text
    assert plan.graph is not None
    edges = {(edge.source, edge.target): edge.tiles_per_item for edge in plan.graph.edges}
    assert edges["B", "writer"] == edges["writer", "b"] == edges["b", "compute"] == 2
    assert "reader" not in {target for source, target in edges if source == "B"}


def test_the_writer_loads_before_it_waits_for_results() -> None:
    text = explored(gemm(64, 64, 64, 32, 32, 32), loaded_by={"B": "writer"}).code["writer"].text
    assert text.index("b_buffer.push_back") < text.index("c_out_buffer.wait_front")


def test_the_corners_of_a_rectangle_come_in_the_order_of_the_noc() -> None:
    """NoC 0 goes right and down, NoC 1 left and up."""
    code = explored(gemm(64, 64, 64, 32, 32, 32), multicast="all", loaded_by={"B": "writer"}, **RECTANGULAR).code
    assert ".noc_x_start = A_first_x" in code["reader"].text
    assert "A_valid.set_multicast(noc, A_first_x, A_first_y, A_last_x, A_last_y," in code["reader"].text
    assert ".noc_x_start = B_last_x" in code["writer"].text
    assert "B_valid.set_multicast(noc, B_last_x, B_last_y, B_first_x, B_first_y," in code["writer"].text
    for role in ("reader", "writer"):
        assert code[role].text.rstrip().endswith("noc.async_full_barrier();\n}")


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("loaded_by", ["both", {"A": "writer", "B": "writer"}])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((64, 64, 96), RECTANGULAR),
        ((64, 64, 96), RECTANGULAR | {"multicast": "all"}),
        ((64, 128, 64), RECTANGULAR | {"multicast": "all", "cores": (3, 2), "core_offset": (1, 2)}),
        ((128, 128, 64), RECTANGULAR | {"multicast": {"A": "grid", "B": "grid"}}),
        ((128, 128, 64), {"multicast": "all", "cores": (4, 1), "policy": "strided", "stages": 1}),
        ((128, 128, 64), {"multicast": "all", "cores": (2, 2), "policy": "z_order", "stages": 3}),
    ],
)
def test_every_step_and_the_emulator_agree(
    target: str, loaded_by: Any, shape: tuple[int, int, int], options: dict[str, Any]
) -> None:
    """The interpreter after each step gives the reference, the emulator the bits of a reader that loads all."""
    kernel = gemm(*shape, 32, 32, 32)
    both, alone = explored(kernel, target, loaded_by=loaded_by, **options), explored(kernel, target)
    assert "writer" in {one.producer for one in both.plan.buffers}
    check = both.check()
    assert check, str(check)
    ran = both.run()
    assert ran.passed, ran.message
    assert ran.outputs[0].tobytes() == alone.run().outputs[0].tobytes()


def test_both_together_are_faster() -> None:
    """By the clock, 1024^3 with all that is shared."""
    options: dict[str, Any] = {
        "multicast": "all", "accumulate": "l1", "math_fidelity": "HiFi2", "policy": "rectangular", "cores": (8, 8),
    }  # fmt: skip
    kernel = gemm(1024, 1024, 1024, 128, 128, 64)
    both, alone = (explored(kernel, loaded_by=one, **options) for one in ("both", "reader"))
    assert both.estimate().us < 0.85 * alone.estimate().us
    assert both.estimate().read_bytes == alone.estimate().read_bytes


def test_both_balances_what_the_kernels_move() -> None:
    """The factor with more tiles stays with the reader: the writer stores the result as well."""
    exploration = explored(gemm(128, 64, 64, 64, 32, 32), loaded_by="both")
    assert {one.name: one.producer for one in exploration.plan.buffers if one.name in "ab"} == {
        "a": "reader", "b": "writer",
    }  # fmt: skip
    note = "A is loaded by the reader: with it, the writer would move more bytes"
    assert note in said(exploration.plan)
    wide = explored(gemm(64, 128, 64, 32, 64, 32), loaded_by="both").plan
    assert {one.name: one.producer for one in wide.buffers if one.name in "ab"} == {"a": "writer", "b": "reader"}


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_the_writer_loads_what_is_predicted_to_be_faster(target: str) -> None:
    """By default, with both times; the results are those of a reader that loads all."""
    kernel = gemm(64, 64, 512, 32, 32, 32)
    options: dict[str, Any] = {"cores": (2, 2), "multicast": "all"}
    chosen, alone = explored(kernel, target, **options), explored(kernel, target, loaded_by="reader", **options)
    assert {one.name: one.producer for one in chosen.plan.buffers if one.name in "ab"} == {"a": "reader", "b": "writer"}
    note = said(chosen.plan)[-1]
    told = re.fullmatch(
        r"the writer loads B, over its own NoC: (\S+) us predicted, (\S+) us if the reader loads all inputs", note
    )
    assert told, note
    for predicted, exploration in zip(told.groups(), (chosen, alone), strict=True):
        assert float(predicted) == pytest.approx(exploration.estimate().us, rel=0.1)
    assert chosen.estimate().us < 0.9 * alone.estimate().us
    assert chosen.run().outputs[0].tobytes() == alone.run().outputs[0].tobytes()


def test_the_writer_loads_what_keeps_its_links_free() -> None:
    """A comes along rows, each with links of its own; all of B would go through the columns of its senders."""
    kernel = gemm(512, 512, 2048, 64, 64, 128)

    def estimated(**options: Any) -> Estimate:
        found = explored(kernel, math_fidelity="LoFi", **options).estimate()
        assert isinstance(found, Estimate)
        return found

    a, b, reader = estimated(), estimated(loaded_by={"B": "writer"}), estimated(loaded_by="reader")
    plan = explored(kernel, math_fidelity="LoFi").plan
    assert {one.tensor: one.topology for one in plan.shared} == {"A": "row", "B": "column"}
    assert {one.name: one.producer for one in plan.buffers if one.name in "ab"} == {"a": "writer", "b": "reader"}
    assert a.links.us < b.links.us / 2
    assert a.us < 0.8 * b.us
    assert a.us < 0.8 * reader.us


def test_another_math_fidelity_is_another_choice() -> None:
    """A lowering takes no times from one that differs in its math fidelity alone."""
    kernel = gemm(128, 128, 256, 64, 64, 64)
    low, high = (explored(kernel, math_fidelity=one, multicast="all") for one in ("LoFi", "HiFi4"))
    forked = high.fork(math_fidelity="LoFi")
    assert said(forked.plan) == said(low.plan)
    assert said(low.plan)[-1].startswith("the writer loads B")
    assert said(low.plan)[-1] != said(high.plan)[-1]


def test_the_writer_loads_nothing_that_would_not_pay() -> None:
    plan = explored(gemm(1024, 1024, 256, 128, 128, 32)).plan
    assert "writer" not in {one.producer for one in plan.buffers}
    assert re.fullmatch(
        r"the writer could load A, which would not pay: \S+ us predicted, \S+ us if the reader loads all inputs",
        said(plan)[-1],
    )


def test_the_writer_loads_ahead_of_its_stores_only_where_that_is_faster() -> None:
    """Some cores have two work items: the blocks of the second come later."""
    kernel = gemm(1024, 1024, 512, 64, 128, 64)
    ways: tuple[dict[str, Any], ...] = ({}, {"loaded_by": "both"}, {"loaded_by": "reader"})
    default, both, reader = (explored(kernel, "blackhole_p150", **one).estimate().us for one in ways)
    assert default <= min(both, reader)


@pytest.mark.parametrize(
    "kernel", [lambda: gemm(64, 64, 32, 32, 32, 32), lambda: two_steps()], ids=["one turn", "after a store"]
)
def test_the_reader_loads_single_blocks_and_what_comes_after_a_store(kernel: Any) -> None:
    plan = explored(kernel()).plan
    assert "writer" not in {one.producer for one in plan.buffers}
    assert not any("the writer" in note for note in said(plan))


def test_one_input_stays_with_the_reader() -> None:
    exploration = explored(copy_block(), loaded_by="both")
    assert {one.producer for one in exploration.plan.buffers} == {"reader"}
    assert any(note.startswith("A is loaded by the reader: ") for note in said(exploration.plan))


def one_more() -> Any:
    """A block and 1, beside a tensor that nothing reads."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), B: T.Tensor((64, 32), "bfloat16"),
               C: T.Tensor((64, 32), "bfloat16")):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, C[bx * 32, 0])

    return kernel


SHARDS: dict[str, Any] = {
    "policy": "match_shard", "mode": "local_shard", "match": "A", "cores": (1, 2),
    "layouts": {"A": {"shard": "height"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (gemm(64, 64, 64, 32, 32, 32), {"loaded_by": "neither"}, "there is no loaded_by 'neither'"),
        (gemm(64, 64, 64, 32, 32, 32), {"loaded_by": {"A": "compute"}}, "there is no kernel that loads 'compute'"),
        (gemm(64, 64, 64, 32, 32, 32), {"loaded_by": {"Z": "writer"}}, "there is no tensor 'Z'"),
        (
            gemm(64, 64, 64, 32, 32, 32), {"loaded_by": {"C": "writer"}},
            "the writer cannot load C: the kernel stores to it, so the writer moves it already",
        ),
        (copy_block(), {"loaded_by": {"A": "writer"}}, "the writer cannot load A: S goes straight to the writer"),
        (one_more(), {"loaded_by": {"B": "writer"}}, "the writer cannot load B: no block of it is loaded"),
        (
            one_more(), SHARDS | {"loaded_by": {"A": "writer"}},
            "the writer cannot load A: its shards are a_in itself, and nothing moves",
        ),
    ],
)  # fmt: skip
def test_what_the_writer_does_not_load(kernel: Any, options: dict[str, Any], message: str) -> None:
    try:
        error: TTExploreError | None = ttx.explore(kernel, options=options).error
    except TTExploreError as refused:
        error = refused
    assert isinstance(error, UsageError), repr(error)
    assert str(error).startswith(message)
    assert error.hint


def test_an_annotation_lets_the_writer_load() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), C: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            T.annotate_tt_schedule(loaded_by={"A": "writer"})
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, C[bx * 32, 0])

    exploration = explored(kernel)
    assert exploration.plan.buffers[0].producer == "writer"
    assert "void kernel_main() {}" in exploration.code["reader"].text
    assert exploration.check()
    assert exploration.run().passed
    assert explored(kernel, loaded_by="reader").plan.buffers[0].producer == "reader"


def two_steps() -> Any:
    """The second input is loaded after the first result is stored."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), B: T.Tensor((64, 32), "bfloat16"),
               C: T.Tensor((64, 32), "bfloat16"), D: T.Tensor((64, 32), "bfloat16")):  # fmt: skip
        with T.Kernel(2) as bx:
            a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            c, d = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                c[i, j] = a[i, j] + 1.0
            T.copy(c, C[bx * 32, 0])
            T.copy(B[bx * 32, 0], b)
            for i, j in T.Parallel(32, 32):
                d[i, j] = b[i, j] * 2.0
            T.copy(d, D[bx * 32, 0])

    return kernel


@pytest.mark.parametrize("loaded_by", [{"B": "writer"}, {"A": "writer", "B": "writer"}])
def test_what_is_loaded_after_a_store(loaded_by: dict[str, str]) -> None:
    """The compute kernel must not wait for the second block before it packs the first result."""
    exploration = explored(two_steps(), loaded_by=loaded_by, stages=1)
    assert exploration.check()
    assert exploration.run().passed


def two_products() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"),
               C: T.Tensor((64, 64), "bfloat16"), D: T.Tensor((64, 64), "bfloat16")):  # fmt: skip
        for left, right, out in ((A, B, C), (C, A, D)):
            with T.Kernel(2, 2) as (bx, by):
                a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
                c = T.alloc_fragment((32, 32), "float32")
                T.clear(c)
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(left[by * 32, k * 32], a)
                    T.copy(right[k * 32, bx * 32], b)
                    T.gemm(a, b, c)
                T.copy(c, out[by * 32, bx * 32])

    return kernel


def test_each_launch_takes_its_own_inputs() -> None:
    """B is an input of the first launch alone, C of the second."""
    found = ttx.explore(two_products(), options={"loaded_by": {"B": "writer", "C": "writer"}})
    assert found.error is None, str(found.error)
    loads = [{one.producer for one in launch.plan.buffers if one.consumer == "compute"} for launch in found.launches]
    assert loads == [{"reader", "writer"}] * 2
    first, second = (launch.code["writer"].text for launch in found.launches)
    assert "noc.async_read(B," in first
    assert "noc.async_read(C," in second
    assert found.run().passed
