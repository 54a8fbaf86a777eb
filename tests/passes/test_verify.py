# pyright: basic
"""What no planted fault makes the verifier say, and conditions that come too late for the passes."""

from __future__ import annotations

import pytest

from tests.faults.faults import sometimes
from tests.faults.kernels import difference
from tests.faults.plant import edited
from tests.faults.test_faults import sound
from ttexplore.errors import Unsupported, VerifyError
from ttexplore.ir.index import Variable
from ttexplore.passes.insert_dst_management import insert_dst_management
from ttexplore.passes.verify import pages, verify
from ttexplore.passes.verify.circular_buffers import _share


def test_too_many_pages_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    exploration = sound(difference)
    monkeypatch.setattr(pages, "_MOST_ROWS", 1)
    with pytest.raises(VerifyError, match=r"the writer: which pages of C are touched is not known: by \* 4") as caught:
        verify(exploration.steps["E1"].after, exploration.target)
    assert caught.value.hint == "use smaller blocks, or simpler indices"


def test_a_condition_that_cannot_be_decided() -> None:
    with pytest.raises(VerifyError, match="the condition x cannot be decided") as caught:
        _share([Variable(0, "x")], [])
    assert caught.value.hint == "use loop variables and constants"


def test_sections_of_dst_under_a_condition() -> None:
    """Which section an operation is in would not be known: D5 refuses it at the operation's line."""
    exploration = sound(difference)
    program = edited("compute", "sub_tiles", sometimes)(exploration.steps["D4"].after)
    with pytest.raises(Unsupported, match="operations on tiles under a condition that is only known") as caught:
        insert_dst_management(program, exploration.target)
    assert caught.value.hint == "use T.if_then_else on elements, or decide it in Python"
    assert caught.value.span is not None
