# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
"""Bfp8_b: the model of its tiles against numbers worked out by hand and the SDK's host code, its packing on the
emulator, and where a layout that asks for it is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.backends.emulator.tiles import tilize, untilize
from ttexplore.backends.ttnn.backend import device_variables
from ttexplore.backends.ttnn.environment import read_environment
from ttexplore.errors import TTExploreError
from ttexplore.ops.block_float import TILE_BYTES, packed, rounded_in_groups, unpacked

BF16, FP32 = "bfloat16", "float32"
BFP8 = {"dtype": "bfp8_b"}
Array = NDArray[np.float32]


def group(*numbers: float) -> Array:
    return np.array([*numbers, *(16 - len(numbers)) * [0.0]], np.float32)


def numbers() -> Array:
    """Ordinary, wide, tiny, huge and whole numbers, zero rows, infinities and NaN."""
    random = np.random.default_rng(7)
    made = random.standard_normal((64, 64))
    made[8:16] *= np.exp2(random.integers(-12, 13, (8, 64)))
    made[16:24] = random.integers(-300, 300, (8, 64)) / 2
    made[24:32] = np.exp2(random.integers(-134, -118, (8, 64))) * random.uniform(-2, 2, (8, 64))
    made[32:40] = random.uniform(-3.4e38, 3.4e38, (8, 64))
    made[40:44] = np.where(random.random((4, 64)) < 0.9, 0, made[40:44])
    made[44:46] = -0.0
    made[46, ::16], made[47, 3::16], made[48, 5::16], made[49, ::2] = np.inf, -np.inf, np.nan, 1e38
    return made.astype(np.float32)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        # 1/64 is the last place of numbers below 2: ties to even, and the largest magnitude is kept to.
        ((1.9, 1 + 1 / 128, 1 + 3 / 128, -1 / 128, 3 / 128), (1.90625, 1, 1.03125, 0, 0.03125)),
        ((1.999, -1.999), (127 / 64, -127 / 64)),
        ((64.0, 0.4, 0.6, 1.0), (64, 0, 1, 1)),
        ((1e-40, -1e-45), (0, 0)),
        ((3.4e38, 1e38), (127 * 2.0**121, 38 * 2.0**121)),
        ((np.inf, 1.0, -2.0), (np.inf, 0, 0)),
    ],
)
def test_groups_worked_out_by_hand(given: tuple[float, ...], left: tuple[float, ...]) -> None:
    np.testing.assert_array_equal(rounded_in_groups(group(*given)), group(*left))


def test_a_tile_is_exponents_and_then_elements() -> None:
    tile = np.zeros((1, 1024), np.float32)
    tile[0, 16:19] = 3.0, -1.5, 0.0
    page = packed(tile)
    assert page.shape == (1, TILE_BYTES)
    assert page[0, :3].tolist() == [0, 128, 0]
    assert page[0, 64 + 16 : 64 + 19].tolist() == [96, 128 + 48, 0]
    np.testing.assert_array_equal(unpacked(page), tile)


def test_packing_tiles_is_rounding_in_groups_and_fits_bfloat16() -> None:
    given = numbers()
    left = rounded_in_groups(given)
    np.testing.assert_array_equal(untilize(unpacked(packed(tilize(given))), given.shape), left)
    normal = np.abs(left) >= np.finfo(np.float32).tiny
    np.testing.assert_array_equal(left.astype(ml_dtypes.bfloat16).astype(np.float32)[normal], left[normal])
    # The last group of a row may be short.
    np.testing.assert_array_equal(rounded_in_groups(given[:, :20])[:, :16], left[:, :16])


_ON_THE_HOST = """
import sys
import numpy as np, ttnn
values = np.load(sys.argv[1])
tiles = ttnn.Tensor(values, data_type=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT)
host = ttnn.to_dtype(tiles, ttnn.float32).to(ttnn.ROW_MAJOR_LAYOUT)
np.save(sys.argv[2], np.array(np.from_dlpack(host.to_numpy())).reshape(values.shape))
"""


@pytest.mark.device
def test_the_model_is_the_hosts(tmp_path: Path) -> None:
    """Bit for bit what ttnn makes of a tensor and reads back. It wants a cluster even for that."""
    environment = read_environment(None)
    given, left = tmp_path / "given.npy", tmp_path / "left.npy"
    np.save(given, numbers())
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [str(environment.python), "-c", _ON_THE_HOST, str(given), str(left)],
        env=variables | device_variables("wolfpine", "wormhole", environment), check=True, capture_output=True,
    )  # fmt: skip
    np.testing.assert_array_equal(rounded_in_groups(numbers()).view(np.uint32), np.load(left).view(np.uint32))


def repacked(dtype: str) -> Any:
    """Tiles of numbers go to DST and from there to such tiles."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), dtype), Out: T.Tensor((64, 64), dtype)):
        T.annotate_tt_layout({Out: BFP8})
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), dtype)
            T.copy(A, a)
            T.copy(a, Out)

    return kernel


def packer(values: Array) -> Array:
    """The packer: each number to 7 bits, then down to the largest exponent of the group, ties away from zero."""
    bits = values.view(np.uint32).astype(np.int64) & 0x7FFFFFFF
    seven = np.where(bits < 0x800000, 0, np.minimum(bits + 0x10000, 0x7F800000) & ~0x1FFFF).astype(np.uint32)
    held = seven.view(np.float32).reshape(-1, 16).astype(np.float64)
    _, exponents = np.frexp(held.max(axis=1, keepdims=True))
    place = np.exp2(exponents - 7.0)
    left = np.floor(held / place + 0.5) * place
    return np.copysign(left.reshape(values.shape), values).astype(np.float32)


@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_the_packer_of_the_emulator(dtype: str) -> None:
    """As measured on ttsim, in 16-bit DST and in 32-bit DST."""
    exploration = ttx.explore(repacked(dtype))
    assert exploration.plan.compute is not None
    assert exploration.plan.compute.fp32_dest_acc_en == (dtype == FP32)
    given = numbers()[:24]
    given = np.concatenate([given, np.zeros((40, 64), np.float32)])
    held = given.astype(ml_dtypes.bfloat16).astype(np.float32) if dtype == BF16 else given
    output = exploration.run([given]).outputs[0]
    assert output.dtype == (ml_dtypes.bfloat16 if dtype == BF16 else np.float32)
    np.testing.assert_array_equal(output.astype(np.float32), packer(held))


def test_infinities_and_nan_on_the_emulator() -> None:
    given = np.zeros((64, 64), np.float32)
    given[0, :3], given[1, :3], given[2, :3] = (np.inf, 1, 2), (-np.inf, 1, 2), (np.nan, 1, 2)
    output = ttx.explore(repacked(FP32)).run([given]).outputs[0]
    assert output[:3, :3].tolist() == [[np.inf, 0, 0], [-np.inf, 0, 0], [np.inf, 0, 0]]


def test_buffers_and_pages_are_as_large_as_the_tiles() -> None:
    exploration = ttx.explore(repacked(BF16), options={"layouts": {"A": {"dtype": "bfloat8_b"}}})
    assert {buffer.page_bytes for buffer in exploration.plan.buffers} == {TILE_BYTES}
    assert [accessor.page_bytes for accessor in exploration.plan.accessors] == [TILE_BYTES] * 2
    assert [buffer.consumer for buffer in exploration.plan.buffers] == ["writer"]


def narrowed() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), FP32), Out: T.Tensor((32, 32), BF16)):
        T.annotate_tt_layout({A: BFP8})
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), BF16)
            T.copy(A, a)
            T.copy(a, Out)

    return kernel


def test_float32_is_packed_from_all_its_bits() -> None:
    """Rounded to bfloat16 first, 1 + 3/128 less a little would be a tie, which goes to 1 + 2/64."""
    given = np.full((32, 32), 1 + 3 / 128 - 2.0**-20, np.float32)
    assert given.astype(ml_dtypes.bfloat16)[0, 0] == 1 + 3 / 128
    exploration = ttx.explore(narrowed())
    for output in (exploration.run([given]).outputs[0], exploration.reference([given])[0]):
        np.testing.assert_array_equal(output.astype(np.float32), 1 + 1 / 64)


def strip() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), BF16), Out: T.Tensor((64, 64), BF16)):
        T.annotate_tt_layout({A: BFP8})
        with T.Kernel(4) as bx:
            a = T.alloc_shared((16, 64), BF16)
            T.copy(A[bx * 16, 0], a)
            T.copy(a, Out[bx * 16, 0])

    return kernel


def integers() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "int32"), Out: T.Tensor((64, 64), "int32")):
        T.annotate_tt_layout({A: BFP8})
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), "int32")
            T.copy(A, a)
            T.copy(a, Out)

    return kernel


def tail() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 40), BF16), Out: T.Tensor((64, 40), BF16)):
        T.annotate_tt_layout({Out: BFP8})
        with T.Kernel(1):
            a = T.alloc_shared((64, 40), BF16)
            T.copy(A, a)
            T.copy(a, Out)

    return kernel


@pytest.mark.parametrize(
    ("kernel", "line", "words"),
    [
        (strip, "T.copy(A[bx * 16, 0], a)", "not a block of whole tiles, and Bfp8_b stores exponents"),
        (integers, "T.annotate_tt_layout", "A is int32, but in Bfp8_b 16 numbers share an exponent"),
        (tail, "T.annotate_tt_layout", "Out has 40 columns, but Bfp8_b packs 16 at once"),
    ],
)
def test_what_has_no_place_in_such_tiles_is_refused(kernel: Any, line: str, words: str) -> None:
    error = ttx.explore(kernel()).error
    assert isinstance(error, TTExploreError)
    assert words in str(error)
    assert error.hint
    assert error.span is not None
    assert line in Path(error.span.file).read_text(encoding="utf-8").splitlines()[error.span.line - 1]


def test_a_format_that_there_is_not_is_answered_with_names() -> None:
    error = ttx.explore(repacked(BF16), options={"layouts": {"A": {"dtype": "uint16"}}}).error
    assert error is not None
    assert "bfp8_b" in str(error)


def test_such_tiles_have_no_rows() -> None:
    layouts = {"A": {"dtype": "bfp8_b", "page": "row"}}
    error = ttx.explore(repacked(BF16), options={"layouts": layouts}).error
    assert error is not None
    assert "A: a row-major tensor in Bfp8_b, which is a format of whole tiles" in str(error)
    assert 'leave out page="row" or the dtype' in error.hint


def test_outputs_in_such_tiles_are_held_to_their_own_bound() -> None:
    @T.prim_func
    def product(A: T.Tensor((64, 64), BF16), Out: T.Tensor((64, 64), BF16)):
        T.annotate_tt_layout({Out: BFP8})
        with T.Kernel(1):
            a, c = T.alloc_shared((64, 64), BF16), T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, clear_accum=True)
            T.copy(c, Out)

    # The fidelity is that of products: it says nothing of copies.
    for kernel, coarse in ((repacked(BF16), "block_float"), (product, "low_fidelity")):
        for fidelity, wanted in (("HiFi4", "block_float"), ("LoFi", coarse)):
            explored = ttx.explore(kernel, options={"math_fidelity": fidelity})
            assert explored.plan.precisions == (wanted,)
