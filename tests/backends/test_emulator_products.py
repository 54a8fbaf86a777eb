"""The two ways to multiply tiles exactly, in float vectors and in whole numbers, agree bit for bit on any processor."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from ttexplore.backends.emulator.compiler import RUNNER_FLAGS, RUNTIME_FOLDER, find_compiler, processor_flags

COMPARISON = r"""
#include <cmath>
#include <cstdio>
#include <random>
#include "matmul_exact.h"

int main() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // as the runner does
#endif
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> places(-12, 12), tenth(0, 9);
    long different = 0;
    for (unsigned round = 0; round < 224; ++round) {
        const FpuMode mode = {round % 2 != 0, 1 + round / 2 % 4, round / 8 % 2 == 0};
        const unsigned kind = round / 16 % 7;
        const uint32_t format = mode.wide && round % 3 ? 0xFFFFE000u : 0xFFFF0000u;
        // Ordinary values, wide exponents, small whole numbers, exponents out of the vectors' range, zeros, outliers,
        // and sums that cancel down to a last place of -1, which Wormhole normalises wrongly.
        const auto value = [&] {
            const float v = normal(generator);
            switch (kind) {
                case 1: return v * ldexpf(1, places(generator));
                case 2: return static_cast<float>(places(generator)) / 4;
                case 3: return v * ldexpf(1, places(generator) * 5);
                case 4: return tenth(generator) < 3 ? 0.0f : v;
                case 5: return tenth(generator) == 0 ? v * ldexpf(1, 60 + places(generator)) : v;
                case 6: return v < 0 ? -1.0f : 1.0f;
                default: return v;
            }
        };
        float a[TILE_ELEMENTS], b[TILE_ELEMENTS], one[TILE_ELEMENTS], other[TILE_ELEMENTS];
        for (float& v : one) v = round % 5 ? 0.0f : masked(normal(generator), mode.wide ? 0xFFFFFFFFu : 0xFFFF0000u);
        if (kind == 6) for (float& v : one) v = -ldexpf(1, -23);
        memcpy(other, one, sizeof one);
        for (int step = 0; step < 3; ++step) {
            for (float& v : a) v = masked(value(), format);
            for (float& v : b) v = masked(value(), format);
            multiply_tiles_exactly(a, b, one, mode);
            fpu_multiply_tiles(a, b, other, mode);
            for (uint32_t i = 0; i < TILE_ELEMENTS; ++i) different += bits_of(one[i]) != bits_of(other[i]);
        }
    }
    printf("%ld\n", different);
}
"""


def flags_here(kind: str) -> tuple[str, ...]:
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    if kind == "this processor":
        return processor_flags(compiler)
    try:
        if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8") or platform.machine() != "x86_64":
            pytest.skip("this processor has no AVX2")
    except OSError:
        pytest.skip("nothing tells whether this processor has AVX2")
    return ("-mavx2", "-mfma")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["this processor", "AVX2"])
def test_vectors_and_whole_numbers_agree(kind: str, tmp_path: Path) -> None:
    compiler, flags = find_compiler(), flags_here(kind)
    assert compiler is not None
    (tmp_path / "main.cpp").write_text(COMPARISON, encoding="utf-8")
    sources = [str(tmp_path / "main.cpp"), *(str(RUNTIME_FOLDER / f"{name}.cpp") for name in ("fpu", "matmul_exact"))]
    made = str(tmp_path / "comparison")
    command = [*compiler.command, *RUNNER_FLAGS, *flags, f"-I{RUNTIME_FOLDER}", *sources, "-o", made]
    subprocess.run(command, check=True, capture_output=True)
    assert subprocess.run([made], check=True, capture_output=True, text=True).stdout == "0\n"
