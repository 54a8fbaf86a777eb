"""Python's questions about objects, not values: of a value that is known only when the kernel runs they are errors at
the kernel's line, or get the answer that its number would get."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.errors import KernelError

_KERNEL = """
import ttexplore.language as T
from numbers import Integral


@T.macro
def in_macro(value):
    return {condition}


@T.prim_func
def kernel(L: T.Tensor((8,), "int32"), B: T.Tensor((64, 32), "float32")):
    with T.Kernel(2) as by:
        a = T.alloc_shared((32, 32), "float32")
        T.fill(a, 0.0)
        flag = None
        number = 3
        table = {{0: 1.0, 1: 2.0}}

        def in_function(value):
            return {condition}

        for k in range(1):
            value = {value}
            if {asked}:
                T.fill(a, 1.0)
        T.copy(a, B[by * 32, 0])
"""
_PLACES = {"the kernel": "{}", "a function": "in_function(value)", "a macro": "in_macro(value)"}


def explored(condition: str, value: str, place: str, folder: Path) -> ttx.Exploration:
    file = folder / "kernel.py"
    asked = _PLACES[place].format(condition)
    # A macro knows none of the kernel's names.
    file.write_text(_KERNEL.format(condition=condition, value=value, asked=asked))
    return ttx.explore(f"{file}::kernel")


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("value", ["by", "k", "L[by]", "by == 0"])
@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("value is 0", "compare numbers with == and !="), ("value is not True", "compare numbers with == and !="),
        ("isinstance(value, int)", "compare the value"), ("isinstance(value, (str, float))", "compare the value"),
        ("isinstance(value, Integral | None)", "compare the value"), ("type(value) is int", "compare the value itself"),
        ("value.__class__ is int", "compare the value itself"), ("{0: True}[value]", "choose with T.if_then_else"),
        ("{0: True}.get(value)", "choose with T.if_then_else"), ("id(value) == 0", "compare the value itself"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_a_value_does_not_answer(condition: str, hint: str, value: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(KernelError) as caught:
        explored(condition, value, place, tmp_path)
    error = caught.value
    assert error.code == "TTX-K010"
    assert hint in error.hint
    assert error.span is not None
    lines = _KERNEL.format(condition=condition, value=value, asked=_PLACES[place].format(condition)).split("\n")
    assert condition in lines[error.span.line - 1] or place != "the kernel"


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        ("by is None", [0, 0]), ("L[by] is not None", [1, 1]), ("flag is None", [1, 1]), ("number is not None", [1, 1]),
        ("isinstance(number, int)", [1, 1]), ("type(number) is int", [1, 1]), ("callable(by)", [0, 0]),
        ("isinstance(by, (str, list))", [0, 0]), ("isinstance(by, object)", [1, 1]), ("by in (1, 5)", [0, 1]),
        ("by in {0: 1}", [1, 0]), ("by not in [1]", [1, 0]), ("by in range(1, 3)", [0, 1]),
        ("table[number - 3] == 1.0", [1, 1]),
        ("a is None", [0, 0]), ("L is B", [0, 0]), ("by == None", [0, 0]), ("callable(len)", [1, 1]),
    ],
)  # fmt: skip
def test_what_has_an_answer(condition: str, want: list[int], tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(_KERNEL.format(condition="True", value="by", asked=condition))
    exploration = ttx.explore(f"{file}::kernel")
    assert exploration.error is None, str(exploration.error)
    inputs = [np.arange(8, dtype=np.int32)][: len(exploration.inputs())]
    assert exploration.run(inputs).outputs[0][::32, 0].tolist() == want
