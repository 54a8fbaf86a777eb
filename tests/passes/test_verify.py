# pyright: basic, reportGeneralTypeIssues=false, reportInvalidTypeForm=false
"""What no planted fault makes the verifier say, and conditions that come too late for the passes."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.faults.faults import around, ended, sometimes, zeros
from tests.faults.kernels import difference, told
from tests.faults.plant import buffer, edited
from tests.faults.test_faults import sound
from tests.rewriting import placed
from ttexplore.errors import ResourceError, Unsupported, VerifyError
from ttexplore.ir.arithmetic.index import Unknown
from ttexplore.ir.build import op
from ttexplore.ir.kernel import FunctionReader
from ttexplore.options import DEFAULTS
from ttexplore.passes.insert_dst_management import insert_dst_management
from ttexplore.passes.verify import pages, verify
from ttexplore.passes.verify.balance import _share
from ttexplore.passes.verify.protocol import check_protocol
from ttexplore.passes.verify.ranges import core_ranges
from ttexplore.passes.verify.resources import check_partition
from ttexplore.plan import CoreWork, Partition
from ttexplore.target import get_target


def test_too_many_pages_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    exploration = sound(difference)
    monkeypatch.setattr(pages, "_MOST_ROWS", 1)
    with pytest.raises(ResourceError, match=r"the writer: C is used in 4 transfers; at most 1 are verified") as caught:
        verify(exploration.steps["E1"].after, exploration.target)
    assert caught.value.hint == 'keep the tensor in tiles, page="tile", or move larger blocks'


def test_pages_are_followed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What many turns touch is the same, however many of them are looked at side by side."""
    exploration = sound(difference)
    plan = exploration.plan
    assert plan.partition is not None
    reader = FunctionReader()
    kernels = [reader.read(*one) for one in exploration.steps["E1"].after.functions.items()]
    touched: list[tuple[str, bool, int, int]] = []

    def take(transfer: pages.TransferRuns, role: str) -> None:
        both = np.broadcast_arrays(transfer.core, transfer.page[0])
        touched.extend(
            (transfer.tensor, transfer.writes, int(core), int(page)) for core, page in zip(*both, strict=True)
        )

    found: list[list[tuple[str, bool, int, int]]] = []
    for side_by_side, long in ((1 << 20, 1 << 20), (7, 1 << 20), (1, 1 << 20), (7, 0), (1, 0)):
        monkeypatch.setattr(pages, "_ROWS_AT_ONCE", side_by_side)
        monkeypatch.setattr(pages, "_LONG", long)
        touched.clear()
        for kernel in kernels:
            pages._TransferWalk(plan.partition, frozenset(layout.name for layout in plan.layouts), take).run(kernel)
        found.append(sorted(touched))
        verify(exploration.steps["E1"].after, exploration.target)
    assert all(one == found[0] for one in found)
    assert len(found[0]) > 7


@pytest.mark.parametrize(
    ("barrier", "nested", "is_late"),
    [
        ("noc_writes_flushed", None, True), ("noc_writes_flushed", sometimes, True),
        ("noc_writes_flushed", around, True), ("noc_write_barrier", None, False),
        ("noc_write_barrier", sometimes, False), ("noc_write_barrier", around, False),
    ],
)  # fmt: skip
def test_a_number_that_the_next_iteration_reads_must_have_arrived(
    barrier: str, nested: Callable[[Any], list[Any]] | None, *, is_late: bool
) -> None:
    program = sound(told).steps["E1"].after
    _, counts = program.functions["reader"].params
    block = buffer(program, "reader", "around")

    def written_back(pop: Any) -> list[Any]:
        write = placed(op("noc_write_part", block, 0, 0, counts, 0, 0, 4), pop)
        return [*(nested(write) if nested else [write]), op(barrier, span=pop.span), pop]

    # Zeros for the tile that it reads beside the number.
    program = edited("reader", "noc_read_tile", zeros)(edited("reader", "cb_pop_front", written_back)(program))
    program = ended("reader", lambda _: op("noc_write_barrier"))(program)
    reader = FunctionReader().read("reader", program.functions["reader"])
    message = "the reader reads Counts before its writes to it have arrived"
    with pytest.raises(VerifyError, match=message) if is_late else nullcontext() as caught:
        check_protocol(reader, program.plan, core_ranges(program.plan.partition))
    if caught is not None:
        assert caught.value.hint == "put noc_write_barrier before the read"


def test_what_is_stored_is_followed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 40 x 24 elements, but for some: which tiles they reach, as NumPy marks them element by element."""

    @T.prim_func
    def kernel(A: T.Tensor((200, 168), "bfloat16")):
        with T.Kernel(7, 5) as (bx, by):
            a = T.alloc_shared((40, 24), "bfloat16")
            T.fill(a, 1)
            if bx + by != 4:
                T.copy(a, A[by * 40, bx * 24])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    elements = np.zeros((224, 192), bool)
    for by, bx in np.ndindex(5, 7):
        if bx + by != 4:
            elements[by * 40 : by * 40 + 40, bx * 24 : bx * 24 + 24] = True
    wanted = elements.reshape(7, 32, 6, 32).any(axis=(1, 3)).ravel()
    first = FunctionReader().read("kernel", next(iter(exploration.steps["B1"].after.functions.values())))
    for side_by_side in (1 << 20, 7, 1):
        monkeypatch.setattr(pages, "_ROWS_AT_ONCE", side_by_side)
        assert np.array_equal(pages.stored_pages(first, exploration.plan)["A"], wanted)


@pytest.mark.parametrize(("starts", "counts", "step", "message"), [
    ((0, 4), (4, 4), 1, None),
    ((0, 1), (4, 4), 2, None),
    ((0, 3), (4, 4), 1, "work item 3 is done by core (0, 0) and by core (1, 0)"),
    ((1, 0), (4, 4), 2, None),
    ((0, 0), (4, 4), 2, "work item 0 is done by core (0, 0) and by core (1, 0)"),
    ((0, 5), (4, 3), 1, "work item 4 is done by no core: the cores do 7 items of 8"),
    ((0, 4), (4, 5), 1, "work item 8 does not exist: the cores do 9 items of 8"),
    ((-1, 3), (4, 5), 1, "work item -1 does not exist: the cores do 9 items of 8"),
    ((0, 4), (4, 0), 1, "work item 4 is done by no core: the cores do 4 items of 8"),
])  # fmt: skip
def test_each_item_is_done_once(
    starts: tuple[int, int], counts: tuple[int, int], step: int, message: str | None
) -> None:
    cores = tuple(
        CoreWork(x, 0, count, {"work_start": start, "work_count": count})
        for x, (start, count) in enumerate(zip(starts, counts, strict=True))
    )
    partition = Partition((8,), "contiguous", "global", (2, 1), cores, ("work_start", "work_count"), step=step)
    with pytest.raises(VerifyError, match=re.escape(message)) if message else nullcontext():
        check_partition(partition, get_target("wormhole_n150"))


def test_a_condition_that_cannot_be_decided() -> None:
    with pytest.raises(VerifyError, match="the condition x cannot be decided") as caught:
        _share([Unknown("x")], {})
    assert caught.value.hint == "use loop variables and constants"


def test_sections_of_dst_under_a_condition() -> None:
    """Which section an operation is in would not be known: D5 refuses it at the operation's line."""
    exploration = sound(difference)
    program = edited("compute", "sub_tiles", sometimes)(exploration.steps["D4"].after)
    with pytest.raises(Unsupported, match="operations on tiles under a condition that is known only") as caught:
        insert_dst_management(program, exploration.target, epilogue=DEFAULTS.epilogue, subblock=None)
    assert caught.value.hint == "use T.if_then_else on elements, or decide the condition in Python"
    assert caught.value.span is not None
