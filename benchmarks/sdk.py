"""Our programs beside the SDK's operations: what the clock predicts for ours, and what was published for the SDK's.

    python -m benchmarks.sdk [--kind NAME ...] [--check]

Each row is an operation that was measured on silicon, and a kernel that computes the same, in the formats and at the
fidelity of the measurement, with the blocks and options that were the fastest of some that were tried. Times are in
microseconds. Those of attention leave out the launch, which is in ours: 1 to 3. With ``--check``, each kernel runs on
the emulator at a small size, with the same options, and is compared with NumPy.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ttexplore as ttx
from benchmarks.sdk_attention import in_numpy
from ttexplore.exploration import Exploration

_PULL = "https://github.com/tenstorrent/tt-metal/pull/57016"
_ISSUE = "https://github.com/tenstorrent/tt-metal/issues/55758"
_GEMMS = "tt-metal: tech_reports/GEMM_FLOPS"
_SOFTMAX = "reports of ttnn's softmax: tests/clock/measured.json"


@dataclass(frozen=True)
class Comparison:
    """An operation of the SDK that took `published_us`, and the kernel that computes it. `small` are the arguments with
    which it is checked, `formula` is that of its inputs, `bound` the largest error beside the largest element."""

    kind: str
    what: str
    target: str
    published_us: float
    source: str
    kernel: str
    arguments: Mapping[str, Any]
    small: Mapping[str, Any]
    formula: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bound: float = 1e-2

    def lowered(self, arguments: Mapping[str, Any]) -> Exploration:
        exploration = ttx.explore(self.kernel, target=self.target, options={**self.options}, **arguments)
        if exploration.error is not None:
            raise exploration.error
        return exploration

    @property
    def predicted_us(self) -> float:
        return self.lowered(self.arguments).estimate().us

    @property
    def error(self) -> float:
        """The largest error of the small program on the emulator, beside the largest element."""
        exploration = self.lowered(self.small)
        inputs = exploration.inputs()
        (output,) = exploration.run(inputs).outputs
        expected = self.formula(*(array.astype(np.float64) for array in inputs))
        difference = np.abs(np.asarray(output, np.float64) - expected).max()
        return float(difference / np.abs(expected).max())


def _attention(
    seq_len: int, published_us: float, source: str, blocks: tuple[int, int], *, causal: bool
) -> Comparison:  # fmt: skip
    formats = {name: {"dtype": "bfp8_b"} for name in ("Q", "K", "V", "Out")}
    sizes = {"heads": 32, "groups": 4, "seq_len": seq_len, "dim": 128, "block_M": blocks[0], "block_N": blocks[1]}
    return Comparison(
        "attention", f"{'causal' if causal else 'full'} {seq_len}, 32/8 heads, d 128, bfp8, HiFi2", "blackhole_p100",
        published_us, source, "benchmarks/sdk_attention.py::attention", {**sizes, "causal": causal},
        {"causal": causal}, functools.partial(in_numpy, causal=causal),
        {"math_fidelity": "HiFi2", "layouts": formats, "sfpu": "fast", "eltwise": "fpu"},
        bound=5e-2,
    )  # fmt: skip


def _matmul(target: str, m: int, k: int, n: int, published_us: float, blocks: tuple[int, int, int]) -> Comparison:
    small = {"M": 128, "K": 128, "N": 128, "block_M": 64, "block_N": 64, "block_K": 64}
    sizes = {"M": m, "K": k, "N": n, "block_M": blocks[0], "block_N": blocks[1], "block_K": blocks[2]}
    return Comparison(
        "matmul", f"{m} x {k} x {n}, bf16, HiFi2", target, published_us, _GEMMS, "notebooks/kernels/gemm.py::matmul",
        sizes, small, np.matmul, {"math_fidelity": "HiFi2", "accumulate": "l1"}, bound=2e-2,
    )  # fmt: skip


def _softmax(x: Any) -> Any:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


COMPARISONS = (
    _matmul("wormhole_n150", 512, 512, 512, 19.97, (64, 64, 128)),
    _matmul("wormhole_n150", 1024, 1024, 1024, 68.98, (128, 128, 128)),
    _matmul("wormhole_n150", 2048, 2048, 2048, 298.92, (256, 256, 128)),
    _matmul("blackhole_p150", 640, 704, 704, 15.70, (64, 64, 352)),
    _matmul("blackhole_p150", 1280, 1408, 1408, 41.37, (128, 128, 352)),
    _matmul("blackhole_p150", 2560, 2816, 2816, 203.18, (256, 256, 352)),
    _attention(4096, 2100, _ISSUE, (64, 1024), causal=False),
    _attention(1024, 188, _PULL, (128, 256), causal=True),
    _attention(2048, 547, _PULL, (128, 256), causal=True),
    _attention(4096, 1834, _PULL, (128, 512), causal=True),
    Comparison(
        "softmax", "32 x 64, bf16", "wormhole_n150", 5.39, _SOFTMAX, "notebooks/gallery/softmax.py::softmax",
        {"M": 32, "N": 64, "block_M": 32}, {"M": 32, "N": 64, "block_M": 32}, _softmax,
    ),
    Comparison(
        "softmax", "2048 x 32000, bf16 (published: log softmax)", "wormhole_n150", 2505.43, _SOFTMAX,
        "notebooks/gallery/softmax.py::online_softmax", {"M": 2048, "N": 32000, "block_M": 32, "block_N": 1600},
        {"M": 64, "N": 256, "block_M": 32, "block_N": 128}, _softmax,
    ),
)  # fmt: skip
KINDS = tuple(dict.fromkeys(comparison.kind for comparison in COMPARISONS))


def row(comparison: Comparison, predicted_us: float) -> str:
    """A line of the table."""
    ratio = predicted_us / comparison.published_us
    return (
        f"{comparison.kind:<10} {comparison.target:<15} {comparison.what:<46} {predicted_us:>9.1f} "
        f"{comparison.published_us:>10.1f} {ratio:>6.2f}"
    )


def checked(comparison: Comparison) -> tuple[bool, str]:
    """Whether the small program is right on the emulator, and a line that says how far off it is."""
    error = comparison.error
    passed = bool(error <= comparison.bound)
    sizes = ", ".join(f"{name}={value}" for name, value in comparison.small.items())
    return passed, (
        f"{comparison.kind} with {sizes} on {comparison.target}: {'equal to' if passed else 'DIFFERS from'} NumPy, "
        f"error {error:.1e} of the largest element, {comparison.bound:.0e} allowed"
    )


def distinct(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """One of those whose small programs are the same."""
    programs = {
        repr((comparison.kernel, comparison.target, comparison.small, comparison.options)): comparison
        for comparison in reversed(comparisons)
    }
    return [*programs.values()][::-1]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="our programs by the clock beside published times of the SDK's")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--check", action="store_true", help="run each program small on the emulator against NumPy")
    given = parser.parse_args(arguments)
    chosen = [comparison for comparison in COMPARISONS if comparison.kind in given.kind]
    if given.check:
        results = [checked(comparison) for comparison in distinct(chosen)]
        print("\n".join(line for _, line in results))
        return 0 if all(passed for passed, _ in results) else 1
    print(f"{'kind':<10} {'chip':<15} {'what':<46} {'ours, us':>9} {'published':>10} {'ratio':>6}")
    for comparison in chosen:
        print(row(comparison, comparison.predicted_us), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
