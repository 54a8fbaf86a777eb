# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Integers of fewer bits than the chip's: they wrap around in every intermediate, as NumPy's do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError, Unsupported

Array = np.ndarray[Any, Any]
FLOATS = "an integer operation is applied to floating-point numbers"
FRACTION = "/ is applied to integers, and its result has a fraction"
U8, I32, F32 = "uint8", "int32", "float32"


def of_bytes(function: Callable[[Any, Any], Any], out: str) -> Any:
    """``Out = function(A, B)`` of two tensors of uint8."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), U8), B: T.Tensor((32, 64), U8), Out: T.Tensor((32, 64), out)):
        with T.Kernel(1) as _:
            a, b, o = T.alloc_shared((32, 64), U8), T.alloc_shared((32, 64), U8), T.alloc_fragment((32, 64), out)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                o[i, j] = function(a[i, j], b[i, j])
            T.copy(o, Out)

    return kernel


def operands() -> tuple[Array, Array]:
    random = np.random.default_rng(3)
    a = np.resize(np.arange(256), (32, 64)).astype(np.uint8)
    b = random.permutation(a.ravel()).reshape(a.shape)
    b[:4] = a[:4]
    return a, b


def where(test: Any, then: Any, otherwise: Any) -> Any:
    """Either NumPy's choice, of numbers that have the dtype of the other side, or the language's."""
    if not isinstance(test, np.ndarray):
        return T.if_then_else(test, then, otherwise)
    return np.where(test, then, otherwise)


def cast(value: Any, dtype: str) -> Any:
    return value.astype(dtype) if isinstance(value, np.ndarray) else T.cast(value, dtype)


def either(name: str, *values: Any) -> Any:
    """A function of NumPy or, of elements, of the language."""
    numpy = {"max": np.maximum, "min": np.minimum, "abs": np.abs, "exp": np.exp, "floor": np.floor}[name]
    return numpy(*values) if any(isinstance(one, np.ndarray) for one in values) else getattr(T, name)(*values)


BYTES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "difference in max": (lambda a, b: either("max", a - 10, 5), U8),
    "difference divided": (lambda a, b: (a - 1) // 2, U8),
    "difference divided by 7": (lambda a, b: (a - 1) // 7, U8),
    "quotient divided": (lambda a, b: (a // 38) // 3 + (cast(b, I32) // 9) // 5, I32),
    "remainder of a sum": (lambda a, b: (a + b) % 10, U8),
    "remainder by a power": (lambda a, b: (a * 3) % 16, U8),
    "sum compared": (lambda a, b: where(a + 200 > 250, 1, 0), U8),
    "sums compared": (lambda a, b: where(a + b < a - b, 1, 2), I32),
    "product": (lambda a, b: either("min", a * b, 100), U8),
    "long product": (lambda a, b: (a * b * a * b + a) >> 1, U8),
    "negative": (lambda a, b: -a // 3, U8),
    "complement": (lambda a, b: either("max", ~a, b), U8),
    "complement shifted": (lambda a, b: ~a >> 2, U8),
    "shift left": (lambda a, b: (a << 3) >> 3, U8),
    "shift by elements": (lambda a, b: ((a << (b & 7)) >> 1) + (a >> (b & 3)), U8),
    "bits": (lambda a, b: ((a ^ (b + 77)) | (a - b)) & (a + b), U8),
    "number first": (lambda a, b: (3 - a) // 2, U8),
    "abs of a difference": (lambda a, b: either("abs", a - b), U8),
    "chosen": (lambda a, b: where(a > b, a - b, b + 100) // 2, U8),
    "as a condition": (lambda a, b: where(cast(a - b, "bool"), a + 156, 9), U8),
    "widened": (lambda a, b: cast(a - b, I32) - 300, I32),
    "widened after": (lambda a, b: cast(a, I32) - cast(b, I32) - 300, I32),
    "to a float": (lambda a, b: cast(a + b, F32) * cast(0.5 * cast(a - 1, F32), F32), F32),
    "times a fraction": (lambda a, b: cast(a + 100, F32) * 0.5, F32),
    "function of a float": (lambda a, b: either("floor", cast(a * 2, F32) / 8.0), F32),
    "narrowed": (lambda a, b: cast(cast(a, I32) * 257 - 300, U8) + 250, U8),
    "signed": (lambda a, b: cast(cast(a, "int8") - cast(b, "int8"), I32), I32),
    "signed compared": (lambda a, b: where(cast(a, "int8") + 100 > 0, 1, 0), I32),
    "signed divided": (lambda a, b: cast((cast(a, "int8") - 100) // 3, I32), I32),
    "of 16 bits": (lambda a, b: cast(cast(a, "uint16") * cast(b, "uint16") * 3 - 9, I32), I32),
    "signed of 16 bits": (lambda a, b: cast((cast(a, "int16") * 257) >> 3, I32), I32),
    "mask": (lambda a, b: cast(a > 100, U8) * cast(b > 50, U8), U8),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_small_integers_wrap_around(name: str) -> None:
    """The reference, every step and the emulator give NumPy's result, which is written by the same lambda."""
    function, out = BYTES[name]
    a, b = operands()
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(a, b)).astype(out)
    exploration = ttx.explore(of_bytes(function, out))
    assert exploration.error is None, str(exploration.error)
    np.testing.assert_array_equal(exploration.reference([a, b])[0], wanted)
    assert exploration.check([a, b])
    np.testing.assert_array_equal(exploration.run([a, b]).outputs[0], wanted)


def test_masks_are_not_wrapped() -> None:
    """What stays within a byte costs nothing: a product of masks needs no integers."""
    exploration = ttx.explore(of_bytes(lambda a, b: T.max(a, b) & T.cast(a > b, U8), U8))
    assert "255" not in exploration.steps["C2"].listing.text
    assert "bitwise_and" in exploration.steps["C2"].listing.text
    free = ttx.explore(of_bytes(lambda a, b: T.if_then_else(a > b, T.max(a, 3), T.min(b, 7)), U8))
    assert not re.search("typecast|bitwise", free.steps["C2"].listing.text)


def test_a_sum_is_wrapped_around_once() -> None:
    """Only the last of a chain of sums and products loses what is above the lowest bits."""
    exploration = ttx.explore(of_bytes(lambda a, b: (a + b) * a - b * 3, U8))
    assert exploration.steps["C2"].listing.text.count("bitwise_and_binary_tile(") == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a + 300, "300 does not fit uint8, which holds 0 to 255"),
        (lambda a, b: a * -1, "-1 does not fit uint8, which holds 0 to 255"),
        (lambda a, b: T.max(a, 256), "256 does not fit uint8, which holds 0 to 255"),
        (lambda a, b: a << 8, "<< of uint8 by 8"),
        (lambda a, b: a / 2, FRACTION),
        (lambda a, b: a // 0, "// by 0"),
        (lambda a, b: a % 0, "% by 0"),
        (lambda a, b: T.cast(a, I32) >> 32, ">> of int32 by 32"),
        (lambda a, b: T.cast(a, F32) // 2.0, FLOATS),
        (lambda a, b: T.cast(a, F32) % 2, FLOATS),
        (lambda a, b: T.cast(a, F32) & 2, FLOATS),
        (lambda a, b: ~T.cast(a, F32), FLOATS),
        (lambda a, b: T.cast(a, I32) / T.cast(b, I32), FRACTION),
    ],
)
def test_operands_that_a_dtype_does_not_take(function: Callable[[Any, Any], Any], message: str) -> None:
    with pytest.raises(KernelError) as raised:
        of_bytes(function, U8)
    assert raised.value.message == message
    assert raised.value.hint
    assert raised.value.span is not None


def test_bytes_that_are_changed_in_place() -> None:
    """They stay in DST, which holds them as float32, until they are copied on."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), U8), Out: T.Tensor((64, 32), U8)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), U8)
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] * 3 + 200
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] // 7
            T.copy(a, Out[bx * 32, 0])

    a = np.resize(np.arange(256), (64, 32)).astype(np.uint8)
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    assert exploration.check([a])
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], (a * np.uint8(3) + np.uint8(200)) // np.uint8(7))


def test_a_division_by_elements_is_refused() -> None:
    error = ttx.explore(of_bytes(lambda a, b: a // b, U8)).error
    assert isinstance(error, Unsupported)
    assert error.message == "a division of elements by buffer_2[i, j]"
