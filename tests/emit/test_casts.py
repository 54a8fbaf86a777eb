"""What the exported hosts make of numbers for tensors of 8 bits and fewer: the same as the language's casts."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus.formats import casts
from ttexplore.backends.emulator.compiler import find_compiler
from ttexplore.emit import host
from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.small import FLOATS, rounded_to
from ttexplore.plan import SMALL_FLOATS, SMALL_WHOLES

DTYPES = (*SMALL_FLOATS, *SMALL_WHOLES)


def numbers() -> Any:
    """Numbers of every size, with those in the middle between two of the dtypes."""
    random = np.random.default_rng(2)
    wide = random.standard_normal(4000) * 10.0 ** random.uniform(-6, 6, 4000)
    middles = np.arange(-2048, 2048) / 16 * np.exp2(random.integers(-12, 8, 4096))
    values = np.concatenate([wide, middles, [0.0, -0.0, np.inf, -np.inf, np.nan, 127.9, -128.9, 255.0, 256.0]])
    return values.astype(np.float32)


def defined(dtype: str) -> Any:
    """Which of the numbers have a cast to the dtype."""
    if dtype in FLOATS:
        return slice(None)
    return ~np.isnan(numbers()) if dtype == "bool" else np.abs(numbers()) < 2**31


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    """The exported run_ttnn.py, without the SDK."""
    exploration = ttx.explore(casts())
    module = types.ModuleType("run_ttnn")
    module.__file__ = str(tmp_path_factory.mktemp("exported") / "run_ttnn.py")
    nothing = types.ModuleType("ttnn")
    for name in ("bfloat16", "float32", "int32", "bfloat8_b"):
        setattr(nothing, name, name)
    before = sys.modules.get("ttnn")
    sys.modules["ttnn"] = nothing
    try:
        exec(compile(exploration.files["run_ttnn.py"].text, module.__file__, "exec"), vars(module))
    finally:
        sys.modules.pop("ttnn")
        if before is not None:
            sys.modules["ttnn"] = before
    return module


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_runner_casts_as_the_language_does(runner: types.ModuleType, dtype: str) -> None:
    values = numbers()[defined(dtype)]
    np.testing.assert_array_equal(runner.cast(values, dtype), rounded_to(values, dtype))
    np.testing.assert_array_equal(runner.cast(values, "float32"), values)


def test_the_host_program_casts_as_the_language_does(tmp_path: Path) -> None:
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    calls = [
        *(f"cast_to_floats(values, {known.fraction_bits}, {known.least_exponent}, {known.largest}f)"
          for known in FLOATS.values()),
        *(f"cast_to_integers(values, {SMALL_INTEGERS[one][0]}, {SMALL_INTEGERS[one][1]})"
          for one in SMALL_WHOLES if one != "bool"),
        "cast_to_bool(values)",
    ]  # fmt: skip
    order = [*FLOATS, *(one for one in SMALL_WHOLES if one != "bool"), "bool"]
    headers = ("algorithm", "cmath", "cstdint", "cstdio", "cstring", "utility", "vector")
    lines = [
        *(f"#include <{one}>" for one in headers),
        "using Words = std::vector<uint32_t>;",
        host._PARTS["small"],
        "int main() {",
        f"    Words values({numbers().size});",
        "    if (!std::fread(values.data(), 4, values.size(), stdin)) return 1;",
        *(f"    {{ const auto one = {call}; std::fwrite(one.data(), 4, one.size(), stdout); }}" for call in calls),
        "}",
    ]
    (tmp_path / "casts.cpp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    program = tmp_path / "casts"
    subprocess.run([*compiler.command, "-std=c++20", "-O1", tmp_path / "casts.cpp", "-o", program], check=True)
    made = subprocess.run([program], input=numbers().tobytes(), capture_output=True, check=True).stdout
    found = np.frombuffer(made, np.float32).reshape(len(order), -1)
    for dtype, cast in zip(order, found, strict=True):
        some = defined(dtype)
        np.testing.assert_array_equal(cast[some], rounded_to(numbers(), dtype)[some], err_msg=dtype)


def test_only_tensors_of_8_bits_are_cast() -> None:
    text = ttx.explore(casts()).code["host"].text
    assert "cast_to_floats(load(options, 1, B_tiles), 2, -14, 57344.0f)" in text
    assert "cast_to_integers(load(options, 2, N_tiles), -128, 127)" in text
    assert "cast_to_bool(load(options, 3, M_tiles))" in text
    assert "pack(A_tiles, load(options, 0, A_tiles))" in text
    assert "// Inputs are converted as by a cast: B to float8_e5m2, N to int8, M to bool.\n" in text
