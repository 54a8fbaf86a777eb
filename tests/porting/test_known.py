"""Kernels that programmers of CUDA and Triton know, as they write them: which are written, and what is told of others.

``python -m tests.porting.test_known`` prints the table.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language
import ttexplore.porting_kernels
from ttexplore.porting.port import PortedKernel
from ttexplore.porting.ways import Way, ways

pytest.importorskip("tree_sitter_cuda")
SOURCES = Path(__file__).parent / "known"
NAMES = sorted(path.name for path in SOURCES.iterdir())
# The row of the porting table of what is written; of others, the kernel that the way by hand names.
OUTCOMES = {
    "attention_alibi.triton": "attention, forward",
    "attention_causal.triton": "attention, forward",
    "attention_full.triton": "attention, forward",
    "attention_grouped.triton": "attention, forward",
    "attention_varlen.triton": "by hand: indexed.py::paged_attention",
    "block_reduction.cu": "by hand: sums.py::row_sums",
    "block_softmax.cu": "softmax",
    "cross_entropy.triton": "reductions",
    "cumsum.triton": "scans",
    "dropout_mask.triton": "element-wise arithmetic",
    "embedding.cu": "gathered rows",
    "flash_minimal.cu": "by hand: attention.py::full_attention",
    "fused_softmax.triton": "softmax",
    "gelu_float4.cu": "element-wise arithmetic",
    "histogram.cu": "by hand: sums.py::column_sums_added",
    "jacobi.cu": "by hand: convolution.py::depthwise_convolution",
    "layer_norm.cu": "RMS norm and layer norm",
    "layer_norm.triton": "RMS norm and layer norm",
    "matmul.triton": "GEMM",
    "quantize_int8.cu": "by hand: casts.py::quantized",
    "rms_norm.triton": "RMS norm and layer norm",
    "rope.triton": "RoPE",
    "rope_positions.cu": "by hand: rope.py::rope_halves",
    "row_sum_tree.cu": "reductions",
    "saxpy_grid_stride.cu": "element-wise arithmetic",
    "scan.cu": "by hand: sums.py::running_sums",
    "sgemm_registers.cu": "by hand: gemm.py::gemm_pipelined",
    "sgemm_tiled.cu": "GEMM",
    "softmax_warps.cu": "softmax",
    "swiglu.triton": "element-wise arithmetic",
    "top_k.cu": "by hand: topk.py::top_k",
    "transpose.cu": "by hand: gemm_transposed.py::gemm_transposed",
    "vector_add.cu": "element-wise arithmetic",
    "wmma_gemm.cu": "by hand: gemm.py::gemm",
}


@functools.cache
def ported(name: str) -> ttx.Port:
    return ttx.port((SOURCES / name).read_text(encoding="utf-8"))


def outcome(kernel: PortedKernel) -> str:
    if kernel.skeleton:
        return kernel.family
    if kernel.draft is not None:
        return f"a draft: {kernel.draft.reason}"
    by_hand = next((way.kernel for way in ways() if way.words == kernel.way), "")
    return f"by hand: {by_hand}"


def test_all_sources_have_an_outcome() -> None:
    assert sorted(OUTCOMES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_is_written_or_the_way_by_hand_is_told(name: str) -> None:
    (kernel,) = ported(name).kernels
    assert outcome(kernel) == OUTCOMES[name]
    assert bool(kernel.outside) == bool(kernel.way)
    assert kernel.way in str(ported(name))


@pytest.mark.parametrize("way", ways(), ids=str)
def test_a_way_names_a_kernel_and_words_that_there_are(way: Way) -> None:
    file, _, function = way.kernel.partition("::")
    folders = (Path(__file__).parents[2] / "notebooks" / "gallery", Path(ttexplore.porting_kernels.__file__).parent)
    texts = [(folder / file).read_text(encoding="utf-8") for folder in folders if (folder / file).exists()]
    assert any(f"def {function}(" in text for text in texts)
    words = re.findall(r"T\.(\w+)", way.hint)
    assert words
    refused = [word for word in words if "guard" in type(getattr(ttexplore.language, word)).__module__]
    assert refused == []


def test_the_last_way_fits_to_everything() -> None:
    assert ways()[-1].fits("", "")


@pytest.mark.parametrize("name", ["block_softmax.cu", "row_sum_tree.cu", "softmax_warps.cu"])
def test_blocks_that_join_what_threads_have_compute_as_numpy(name: str) -> None:
    explored = ttx.explore(ported(name), rows=64, columns=160)
    x = np.random.default_rng(2).standard_normal((64, 160)).astype(np.float32)
    (output,) = explored.run([x], backend="emulator").outputs
    wide = x.astype(np.float64)
    weights = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = wide.sum(axis=1) if name.startswith("row_sum") else weights / weights.sum(axis=1, keepdims=True)
    assert np.abs(output - expected).max() <= 1e-2 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("name", "gathers"), [("embedding.cu", True), ("cross_entropy.triton", True), ("saxpy_grid_stride.cu", False)]
)
def test_which_indices_are_tried_is_told(name: str, gathers: bool) -> None:
    told = str(ported(name).kernels[0].proof)
    assert ("holds indices that there are: no others are tried" in told) == gathers


if __name__ == "__main__":
    print(*(f"{name:<26} {outcome(ported(name).kernels[0])}" for name in NAMES), sep="\n")
