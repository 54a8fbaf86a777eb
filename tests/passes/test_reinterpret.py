"""T.reinterpret: the bits of float32 as integers, and the reverse; those of small integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import elementwise
from tests.corpus.bits import exponents
from ttexplore.errors import KernelError, Unsupported
from ttexplore.ops.small import numpy_dtype


def numbers(shape: tuple[int, ...]) -> Any:
    random = np.random.default_rng(0)
    values = random.standard_normal(shape) * 10.0 ** random.uniform(-30, 30, shape)
    values.reshape(-1)[:10] = [1, 2, 4, -1, -2, 0.5, 3, -3, 0.75, 1e-30]
    return values.astype(np.float32)


@pytest.mark.parametrize("backend", ["reference", "interpreter", "emulator"])
def test_exponents_and_powers_of_two(backend: str) -> None:
    a = numbers((40, 70))
    exponent, power, shifted = ttx.explore(exponents()).run([a], backend).outputs
    mantissa, above = np.frexp(np.abs(a))
    wanted = np.where(mantissa == 0.5, above - 1, above)
    np.testing.assert_array_equal(exponent, wanted)
    np.testing.assert_array_equal(power, np.ldexp(np.float32(1), wanted))
    np.testing.assert_array_equal(shifted, a.view(np.uint32) >> 4)


def test_every_step_has_them() -> None:
    assert ttx.explore(exponents()).check([numbers((40, 70))])


def test_bits_of_constants() -> None:
    one = elementwise(lambda a, b: T.reinterpret(T.reinterpret(a, "int32") & -(1 << 23), "float32") * 1.0, "float32")
    a, b = numbers((128, 64)), numbers((128, 64))
    (found,) = ttx.explore(one).run([a, b]).outputs
    _, exponent = np.frexp(a)
    np.testing.assert_array_equal(found, np.copysign(np.ldexp(np.float32(1), exponent - 1), a))


def uint32(operation: Any) -> Any:
    return elementwise(lambda a, b: operation(T.reinterpret(a, "uint32"), T.reinterpret(b, "uint32")), "float32")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (uint32(lambda a, b: T.cast(a, "float32")), "a cast of uint32 to float32 on elements"),
        (uint32(lambda a, b: T.if_then_else(a < b, 1.0, 0.0)), "a comparison of uint32 on elements"),
        (uint32(lambda a, b: T.cast(T.max(a, b) & 255, "float32")), "T.max of uint32 on elements"),
        (uint32(lambda a, b: T.cast((a >> b) & 255, "float32")), "a shift of uint32 by elements"),
        (
            elementwise(lambda a, b: T.cast(T.cast(T.reinterpret(a, "int32"), "uint32") >> 4, "int32"), "float32"),
            "a cast of int32 to uint32 on elements",
        ),
        (uint32(lambda a, b: T.cast((a // 4) & 255, "float32")), "arithmetic in uint32 on elements"),
    ],
)
def test_what_the_chip_takes_for_signed_is_refused(kernel: Any, message: str) -> None:
    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert error.message == message
    assert "int32" in error.hint or "constant" in error.hint


def test_narrow_dst_has_no_bits_of_float32() -> None:
    kernel = elementwise(lambda a, b: T.reinterpret(T.reinterpret(a * 1.0, "int32"), "float32"), "bfloat16")
    error = ttx.explore(kernel, options={"accumulate_dtype": "bfloat16"}).error
    assert isinstance(error, Unsupported)
    assert error.message == "the bits of float32 in 16-bit DST"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_bits_of_halves(dtype: str) -> None:
    """All of them: numbers, denormal ones, infinity and NaN."""

    @T.prim_func
    def kernel(L: T.Tensor((256, 256), "uint8"), H: T.Tensor((256, 256), "uint8"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(2, 2) as (bx, by):
            low, high = T.alloc_shared((128, 128), "uint8"), T.alloc_shared((128, 128), "uint8")
            c = T.alloc_fragment((128, 128), "float32")
            T.copy(L[by * 128, bx * 128], low)
            T.copy(H[by * 128, bx * 128], high)
            for i, j in T.Parallel(128, 128):
                bits = T.cast(high[i, j], "uint16") << 8 | T.cast(low[i, j], "uint16")
                c[i, j] = T.cast(T.reinterpret(bits, dtype), "float32")
            T.copy(c, C[by * 128, bx * 128])

    high, low = np.mgrid[:256, :256].astype(np.uint8)
    exploration = ttx.explore(kernel)
    assert exploration.check([low, high])
    want = (high.astype(np.uint16) << 8 | low).view(numpy_dtype(dtype)).astype(np.float32)
    # Operations of the SFPU may take denormal numbers of float32 for zero.
    normal = ~(np.abs(want) < np.finfo(np.float32).tiny)
    for backend in ("reference", "emulator"):
        (found,) = exploration.run([low, high], backend).outputs
        np.testing.assert_array_equal(found[normal], want[normal])


def test_bits_of_bytes() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((32, 256), "uint8"), B: T.Tensor((32, 256), "int8"), C: T.Tensor((32, 256), "int32"),
        D: T.Tensor((32, 256), "int32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b = T.alloc_shared((32, 256), "uint8"), T.alloc_shared((32, 256), "int8")
            c, d = T.alloc_fragment((32, 256), "int32"), T.alloc_fragment((32, 256), "int32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 256):
                c[i, j] = T.cast(T.reinterpret(a[i, j] << 4, "int8") >> 4, "int32")
                d[i, j] = T.cast(T.reinterpret(b[i, j], "uint8"), "int32")
            T.copy(c, C)
            T.copy(d, D)

    a = np.broadcast_to(np.arange(256, dtype=np.uint8), (32, 256)).copy()
    exploration = ttx.explore(kernel)
    assert exploration.check([a, a.view(np.int8)])
    c, d = exploration.run([a, a.view(np.int8)]).outputs
    np.testing.assert_array_equal(c, (a << 4).view(np.int8) >> 4)
    np.testing.assert_array_equal(d, a)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda a: T.reinterpret(a, "uint16"), "T.reinterpret of float32 as uint16"),
        (lambda a: T.reinterpret(1.5, "int32"), "T.reinterpret of 1.5 as int32"),
    ],
)
def test_other_dtypes_are_refused(operation: Any, message: str) -> None:
    with pytest.raises(KernelError) as caught:
        elementwise(lambda a, b: operation(a), "float32")
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith("read the bits of float32 as uint32 or int32, or the reverse")
