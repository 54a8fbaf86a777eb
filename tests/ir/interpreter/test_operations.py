"""The interpreter runs each operation of the table, and computes with the table's meanings."""

from __future__ import annotations

import pytest

from ttexplore.ir.interpreter.operations import operation
from ttexplore.ops import FORMS, OPS


@pytest.mark.parametrize("name", FORMS)
def test_each_operation_is_run(name: str) -> None:
    assert callable(operation(FORMS[name]))


def test_compute_operations_have_a_meaning() -> None:
    engines = ("fpu", "sfpu", "pack", "block")
    assert [name for name, op in OPS.items() if op.engine in engines and op.meaning is None] == []
