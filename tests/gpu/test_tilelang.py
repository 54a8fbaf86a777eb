"""GPU lanes with the real TileLang. Each starts a process that imports it, so there are few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from benchmarks.gpu_lanes import KERNELS
from ttexplore.control import FREE
from ttexplore.errors import BackendError
from ttexplore.gpu.environment import read_environment
from ttexplore.gpu.lane import request_for
from ttexplore.gpu.process import ask
from ttexplore.gpu.ptx import find_nvcc
from ttexplore.gpu.recorded import recorded, without_times
from ttexplore.language.portable import portable

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu")]


@pytest.mark.parametrize(("name", "arch"), [("matmul", "sm_90a"), ("softmax", "gfx942"), ("full_attention", "sm_90a")])
def test_a_recording_is_what_tilelang_answers(environment: Path, name: str, arch: str) -> None:
    reference, arguments = KERNELS[name]
    sent = portable(ttx.explore(reference, **arguments).kernel)
    request = request_for(sent.texts, sent.arguments, arch)
    known = recorded(request)
    assert known is not None
    assert without_times(ask(read_environment(environment), request, FREE)) == without_times(known)


def test_functions_sizes_and_annotations(environment: Path) -> None:
    """What a text names is there in the other process, and lines of functions that it calls are theirs."""
    n = T.dynamic("n")
    factors = (2.0, [3.0])

    @T.macro
    def put(a: Any, b: Any):
        T.copy(a, b)

    @T.prim_func
    def main(A: T.Tensor((n, 128), "float32"), B: T.Tensor((n, 128), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=128) as bx:
            T.annotate_tt_schedule(policy="strided")
            a = T.alloc_shared((64, 128), "float32")
            put(A[bx * 64, 0], a)
            for i, j in T.Parallel(64, 128):
                a[i, j] = a[i, j] * (factors[0] + factors[1][0])
            put(a, B[bx * 64, 0])

    explored = ttx.explore(main)
    lane = explored.gpu("sm_100a", environment=environment)
    assert lane.error is None
    assert "5.0" in lane.code or "5.000000e+00" in lane.code
    source = {explored.kernel.first_line + number: one.text for number, one in enumerate(explored.kernel.source.lines)}
    product = next(line for line in lane.code.lines if "5.0" in line.text or "5.000000e+00" in line.text)
    assert "a[i, j] * " in source[product.origins[0].span.line]
    annotation = next(number for number, text in source.items() if "annotate_tt_schedule" in text)
    assert lane.notes == (f"{explored.kernel.file}:{annotation}: T.annotate_tt_schedule is left out",)
    macro = next(origin for line in lane.code.lines for origin in line.origins if origin.span.line not in source)
    assert "T.copy(a, b)" in Path(__file__).read_text().splitlines()[macro.span.line - 1]


def test_what_tilelang_does_not_trace_is_told_with_the_line(environment: Path) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((64, 64), "float32")
            T.copy(A, a)
            T.copy(a, B)

    explored = ttx.explore(main)
    text = explored.kernel.source.text
    sent = portable(explored.kernel)
    sent.texts[0]["text"] = text.replace("T.copy(a, B)", "T.no_such_name(a, B)")
    request = request_for(sent.texts, sent.arguments, "sm_90a")
    answer = ask(read_environment(environment), request, FREE)
    assert answer["error"]["kind"] == "trace"
    assert "TileLang 0.1.15 has no T.no_such_name" in answer["error"]["text"]
    line = next(number for number, one in enumerate(text.split("\n"), 1) if "T.copy(a, B)" in one)
    assert answer["error"]["where"] == [0, line]


def test_a_pass_that_fails_is_the_last_step(environment: Path) -> None:
    """TileLang finds no layout for rows of 160 elements over its threads."""
    lane = ttx.explore("notebooks/gallery/softmax.py::softmax", N=160).gpu(environment=environment)
    assert lane.steps[-1].name == "LayoutInference"
    with pytest.raises(BackendError, match="no available layout found"):
        _ = lane.code


def test_ptx_of_a_recorded_lane(environment: Path) -> None:
    if find_nvcc() is None:
        pytest.skip("nvcc is not installed")
    reference, arguments = KERNELS["matmul"]
    lane = ttx.explore(reference, **arguments).gpu(environment=Path("nowhere"))
    made = lane.compile(environment=environment)
    assert "wgmma.mma_async" in made.ptx
    (resources,) = made.resources
    assert resources.kernel == "matmul_kernel"
    assert 64 < resources.registers <= 255
