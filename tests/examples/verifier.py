# pyright: basic
"""VerifyError. Its examples are faults of tests/faults; here is what no change of a program between passes shows."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus.dtypes import conversions
from tests.faults.kernels import difference
from tests.faults.test_faults import sound
from tests.ir.interpreter.changed import dropped, run_changed
from ttexplore.passes.split_device_kernel import _check_complete


def v045() -> Any:
    """The interpreter runs a kernel from which a typecast was removed."""
    return run_changed(conversions(), "compute", dropped("typecast_fp32_to_int32_tile"))


def v060(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A pass calls TVM in a way that it does not support."""

    def bare(statement: Any, *_: Any) -> Any:
        raise ValueError("Check failed: (small.has_value()) is false")

    monkeypatch.setattr("ttexplore.passes.split_device_kernel._check_complete", bare)
    return ttx.explore(difference())


def v051() -> Any:
    """A pass splits the program and loses the writer."""
    functions = sound(difference).steps["D1"].after.functions
    return _check_complete(
        sound(difference).steps["C3"].after.kernel, {role: functions[role] for role in ("reader", "compute")}
    )
