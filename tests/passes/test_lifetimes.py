# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Circular buffers that several blocks share: only where it takes, only blocks that are never there together."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import CORPUS
from tests.corpus.gemms import attention_like, chained_loops, gated, many_products
from tests.faults.kernels import stored_in_another_order
from tests.few_buffers import with_few_buffers
from tests.said import said
from ttexplore.analysis.core_resources import can_share
from ttexplore.errors import ResourceError, VerifyError
from ttexplore.exploration import Exploration
from ttexplore.ir.kernel import FunctionReader
from ttexplore.passes.insert_dst_management.lifetimes import _pages, lifetimes
from ttexplore.passes.verify import verify
from ttexplore.target import get_target


def right(exploration: Exploration) -> None:
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    run = exploration.run()
    assert run.passed, run.message


def shared(exploration: Exploration) -> list[list[str]]:
    """The names of the buffers that share a circular buffer."""
    numbers: dict[int | None, list[str]] = {}
    for one in exploration.plan.buffers:
        numbers.setdefault(one.index, []).append(one.name)
    return [names for names in numbers.values() if len(names) > 1]


def test_what_fits_shares_nothing() -> None:
    assert shared(ttx.explore(many_products(20))) == []


def test_as_few_share_as_it_takes() -> None:
    exploration = ttx.explore(many_products(33))
    assert len(exploration.plan.buffers) == 37
    assert len(exploration.plan.on_chip.buffers) == 32
    right(exploration)


def test_the_result_is_numpys() -> None:
    exploration = with_few_buffers(many_products(6))
    assert len(exploration.plan.buffers) > len(exploration.plan.on_chip.buffers)
    right(exploration)
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal(shape).astype(np.float32) * 0.25 for shape in ((64, 32), (32, 32)))
    expected = a @ w
    for _ in range(6):
        expected = expected + np.minimum(expected, 1.0) * 0.125 @ w
    run = exploration.run([a, w])
    np.testing.assert_allclose(np.asarray(run.outputs[0], np.float32), expected, rtol=0.05, atol=0.05)


def test_the_plan_says_who_shares() -> None:
    exploration = with_few_buffers(many_products(3))
    (names,) = [names for names in shared(exploration) if "e" in names]
    assert names == ["e", "e_3"]
    assert exploration.plan.buffer("e").reason == (
        f"shares CB {exploration.plan.buffer('e').index} with e_3: their blocks are never there at the same time"
    )
    assert any("use 6 circular buffers" in note and "e, e_3" in note for note in said(exploration.plan))
    assert "// e, e_3: compute -> compute" in exploration.files["main.cpp"].text


def one_after_another(count: int) -> Any:
    """Blocks that are loaded, changed and stored, each in a loop of its own, and a product of three blocks."""

    @T.prim_func
    def kernel(A: T.Tensor((64 * count, 32), "bfloat16"), C: T.Tensor((64 * count + 32, 32), "bfloat16")):
        with T.Kernel(1):
            loaded = [T.alloc_shared((32, 32), "bfloat16") for _ in range(count)]
            made = [T.alloc_fragment((32, 32), "bfloat16") for _ in range(count)]
            held = [T.alloc_shared((32, 32), "bfloat16") for _ in range(3)]
            c = T.alloc_fragment((32, 32), "float32")
            for n in [*range(count)]:
                for k in range(2):
                    T.copy(A[(n * 2 + k) * 32, 0], loaded[n])
                    for i, j in T.Parallel(32, 32):
                        made[n][i, j] = T.exp(loaded[n][i, j]) + n
                    T.copy(made[n], C[(n * 2 + k) * 32, 0])
            for n, one in enumerate(held):
                for i, j in T.Parallel(32, 32):
                    one[i, j] = i + n
            T.clear(c)
            for one in held:
                T.gemm(one, one, c)
            T.copy(c, C[64 * count, 0])

    return kernel


def test_blocks_between_kernels_share_in_their_order() -> None:
    exploration = with_few_buffers(one_after_another(4))
    names = [name for group in shared(exploration) for name in group]
    assert {"loaded", "loaded_2", "made", "made_2", "made_3", "made_4"} <= set(names), names
    right(exploration)
    (a,) = exploration._inputs(None, 0)
    expected = np.exp(a.astype(np.float32)) + np.repeat(np.arange(4.0), 64)[:, None]
    got = np.asarray(exploration.run([a]).outputs[0], np.float32)
    np.testing.assert_allclose(got[:-32], expected, rtol=0.02)


def test_blocks_that_are_stored_in_another_order_do_not_share() -> None:
    exploration = with_few_buffers(stored_in_another_order())
    assert shared(exploration) == []
    right(exploration)


def between(count: int) -> Any:
    """Several operands that all wait for one product of all."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            held = [T.alloc_shared((32, 32), "bfloat16") for _ in range(count)]
            T.copy(A, a)
            for number, one in enumerate(held):
                for i, j in T.Parallel(32, 32):
                    one[i, j] = a[i, j] * (number + 1.0)
            T.clear(c)
            for one in held:
                T.gemm(one, one, c)
            T.copy(c, C)

    return kernel


def test_blocks_that_are_there_together_do_not_share() -> None:
    exploration = with_few_buffers(between(4))
    assert shared(exploration) == []
    right(exploration)


def test_more_blocks_together_than_a_core_can_hold() -> None:
    error = ttx.explore(between(40)).error
    assert isinstance(error, ResourceError)
    assert error.message == "43 circular buffers are needed; a core of wormhole_n150 has 32"
    assert error.span is not None


def test_some_that_share_are_not_enough() -> None:
    chip = dataclasses.replace(get_target("wormhole_n150"), circular_buffers=5)
    error = ttx.explore(many_products(4), target=chip).error
    assert isinstance(error, ResourceError)
    assert error.message == "6 circular buffers are needed, even where blocks share them; a core of wormhole_n150 has 5"


def test_the_line_where_the_buffer_beyond_belongs_to_none() -> None:
    """The tile of a mask is of no line."""
    kernel = next(case for case in CORPUS if case.name == "elements_causal_mask_bf16").make()
    few = with_few_buffers(kernel).target
    error = ttx.explore(kernel, target=dataclasses.replace(few, circular_buffers=few.circular_buffers - 1)).error
    assert isinstance(error, ResourceError)
    assert "4 circular buffers are needed" in error.message
    assert error.span is not None


def test_l1_is_shared_before_sub_blocks_are_smaller() -> None:
    plenty = ttx.explore(many_products(6))
    used = sum(one.total_bytes for one in plenty.plan.buffers)
    chip = dataclasses.replace(get_target("wormhole_n150"), l1_usable_bytes=used - 1)
    exploration = ttx.explore(many_products(6), target=chip)
    assert len(exploration.plan.on_chip.buffers) == len(plenty.plan.buffers) - 1
    assert exploration.plan.compute is not None
    assert not any("L1 has no room" in reason for reason in exploration.plan.compute.reasons)
    right(exploration)


@pytest.mark.parametrize("kernel", [attention_like, lambda: gated(128)], ids=["attention", "gated"])
def test_blocks_carried_by_loops(kernel: Any) -> None:
    right(with_few_buffers(kernel()))


@pytest.mark.parametrize(
    "kernel", [lambda: many_products(3), chained_loops, lambda: gated(128)], ids=["chain", "loops", "gated"]
)
def test_the_verifier_finds_which_blocks_meet(kernel: Any) -> None:
    """It follows the buffers on its own: of each pair with the same pages, both say the same."""
    exploration = ttx.explore(kernel())
    program = exploration.steps[-1].after
    own = [one for one in program.plan.buffers if can_share(one)]
    found = lifetimes(FunctionReader().read("compute", program.functions["compute"]), own)
    assert not found.unknown
    pairs = [(a, b) for a, b in itertools.combinations(own, 2) if _pages(a) == _pages(b)]
    assert pairs
    for a, b in pairs:
        buffers = tuple(
            dataclasses.replace(one, index=a.index) if one.name == b.name else one for one in program.plan.buffers
        )
        edited = program.with_plan(buffers=buffers)
        if found.meet(a.name, b.name):
            with pytest.raises(VerifyError, match="whose circular buffer"):
                verify(edited, exploration.target)
        else:
            verify(edited, exploration.target)


def test_the_views_show_circular_buffers_of_the_chip() -> None:
    exploration = with_few_buffers(many_products(3))
    plan = exploration.plan.on_chip
    names = [one.name for one in plan.buffers]
    assert "e and 1 more" in names
    assert plan.graph is not None
    assert {node.name for node in plan.graph.nodes if node.kind == "circular_buffer"} == set(names)
    timeline = exploration.timeline()
    assert "e and 1 more" in timeline.buffers.values()
    assert timeline.occupancy("e and 1 more").max() == 1
