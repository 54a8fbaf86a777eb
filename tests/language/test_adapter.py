"""The adapter to TVM's private parts: spans both ways, operations, conversions."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import ir, tirx

from ttexplore.ir.adapter import call, is_buffer, register_op, set_span, span_of, spans_of, to_expr, to_tvm_span
from ttexplore.record import Span

HERE = Span("kernel.py", 3, 5, 4, 9)


def test_spans_go_both_ways() -> None:
    statement = tirx.Evaluate(tirx.const(1, "int32"))
    assert span_of(statement) is None
    set_span(statement, to_tvm_span(HERE))
    assert span_of(statement) == HERE
    both = ir.SequentialSpan([to_tvm_span(HERE), to_tvm_span(Span("other.py", 1, 1, 1, 2))])
    set_span(statement, both)
    assert spans_of(statement) == (HERE, Span("other.py", 1, 1, 1, 2))
    assert span_of(statement) == HERE
    text: Any = "text"
    with pytest.raises(TypeError, match="str has no span"):
        set_span(text, to_tvm_span(HERE))


def test_operations_are_registered_once() -> None:
    assert register_op("tl.test_adapter").same_as(register_op("tl.test_adapter"))
    made = call("tl.test_adapter", [1, 2.5, "text", True], {"flag": 1})
    assert [type(argument).__name__ for argument in made.args] == ["IntImm", "FloatImm", "StringImm", "IntImm"]
    attributes: Any = made.attrs
    assert (list(attributes.keys()), int(attributes["flag"])) == (["flag"], 1)


def test_none_never_reaches_tvm() -> None:
    for value in (None, [1], object()):
        with pytest.raises(TypeError, match="is no expression"):
            to_expr(value)
    nothing: Any = None
    with pytest.raises(TypeError, match="None is no expression"):
        call("tl.test_adapter", [nothing])


def test_buffers_are_told_from_variables() -> None:
    assert is_buffer(tirx.decl_buffer((4, 4), "float32"))
    assert not is_buffer(tirx.Var("x", "int32"))
    assert not is_buffer(3)
