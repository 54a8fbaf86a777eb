# pyright: basic
"""What no planted fault makes the verifier say, and conditions that come too late for the passes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.faults.faults import sometimes
from tests.faults.kernels import difference
from tests.faults.plant import edited
from tests.faults.test_faults import sound
from ttexplore.errors import ResourceError, Unsupported, VerifyError
from ttexplore.ir.index import Unknown
from ttexplore.ir.kernel import Reader
from ttexplore.options import DEFAULTS
from ttexplore.passes.insert_dst_management import insert_dst_management
from ttexplore.passes.verify import pages, verify
from ttexplore.passes.verify.balance import _share


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
    reader = Reader()
    kernels = [reader.read(*one) for one in exploration.steps["E1"].after.functions.items()]
    touched: list[tuple[str, bool, int, int]] = []

    def take(transfer: pages.Transfer, role: str) -> None:
        both = np.broadcast_arrays(transfer.core, transfer.page[0])
        touched.extend(
            (transfer.tensor, transfer.writes, int(core), int(page)) for core, page in zip(*both, strict=True)
        )

    found: list[list[tuple[str, bool, int, int]]] = []
    for side_by_side in (1 << 20, 7, 1):
        monkeypatch.setattr(pages, "_ROWS_AT_ONCE", side_by_side)
        touched.clear()
        for kernel in kernels:
            pages._Walk(plan.partition, frozenset(layout.name for layout in plan.layouts), take).run(kernel)
        found.append(sorted(touched))
        verify(exploration.steps["E1"].after, exploration.target)
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 7


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
