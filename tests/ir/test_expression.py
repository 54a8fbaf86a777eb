"""The shown text of an expression, read as Python, means what the expression does."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tvm import tirx

from ttexplore.ir.arithmetic.expression import format_expression

X, Y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
ONE = tirx.const(1, "int32")


@pytest.mark.parametrize(
    ("expression", "text", "meaning"),
    [
        (tirx.EQ(tirx.LT(X, Y), tirx.LT(Y, X)), "(x < y) == (y < x)", lambda x, y: (x < y) == (y < x)),
        (tirx.Sub(X, tirx.Sub(Y, ONE)), "x - (y - 1)", lambda x, y: x - (y - 1)),
        (tirx.FloorMod(tirx.Mul(X, Y), tirx.Add(X, ONE)), "x * y % (x + 1)", lambda x, y: (x * y) % (x + 1)),
        (tirx.EQ(tirx.Not(tirx.LT(X, Y)), tirx.LT(X, ONE)), "(not x < y) == (x < 1)", lambda x, y: (x >= y) == (x < 1)),
        (tirx.Not(tirx.And(tirx.LT(X, Y), tirx.LT(Y, ONE))), "not (x < y and y < 1)", lambda x, y: not (x < y < 1)),
        (tirx.Add(tirx.BitwiseAnd(X, Y), ONE), "(x & y) + 1", lambda x, y: (x & y) + 1),
    ],
)
def test_the_text_means_the_expression(expression: Any, text: str, meaning: Any) -> None:
    assert format_expression(expression) == text
    for x, y in itertools.product(range(4), repeat=2):
        assert eval(text, {"x": x, "y": y}) == meaning(x, y)
