"""A function of the kernel language that is one operation of the chip is a row of the table: who else must know it."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore.language as T
from tests.backends.accuracy import ACCURACIES
from tests.fuzz.draw.elementwise import UNARY
from tests.fuzz.meaning import OPERATIONS
from ttexplore.analysis.expressions import _FUNCTIONS
from ttexplore.ir.arithmetic.functions import FUNCTIONS
from ttexplore.language.api import math
from ttexplore.ops import OPS

ROWS = {op.function: op for op in OPS.values() if op.function}
# What rounds, or is exact, has no accuracy to be measured.
EXACT = {"abs", "ceil", "floor", "nearbyint", "trunc"}
# Drawn kernels call the rounding to even by another name, and do not truncate.
DRAWN_AS = {"nearbyint": "round", "trunc": "floor"}


@pytest.mark.parametrize("name", ROWS)
def test_everybody_knows_the_function(name: str) -> None:
    assert FUNCTIONS[name] is ROWS[name].of_elements, "the interpreter and constants"
    assert f"{_FUNCTIONS[name]}_tile" == ROWS[name].name, "the lowering"
    assert getattr(T, name) is getattr(math, name), "the language: a line in language/math.py and language/__init__.py"
    assert name in T.__all__
    assert name in EXACT or name in {one.name for one in ACCURACIES}, "docs/numerics.md, by tests/backends/accuracy.py"
    assert DRAWN_AS.get(name, name) in {*UNARY} & {*OPERATIONS}, "random kernels: fuzz/draw/elementwise.py, meaning.py"


@pytest.mark.parametrize("name", ROWS)
def test_one_meaning(name: str) -> None:
    """The interpreter of elements and that of tiles compute the same, the former in the dtype of its operand."""
    values = np.linspace(0.1, 3, 64, dtype=np.float32)
    meaning = ROWS[name].meaning
    assert meaning is not None
    np.testing.assert_array_equal(FUNCTIONS[name](values), meaning(values))
