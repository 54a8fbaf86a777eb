"""The porting checklist: each check has a kernel that passes and one that fails, and says where, how much, and what
to do."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
import ttexplore.porting_kernels
from tests.faults.kernels import difference
from tests.faults.plant import renamed
from ttexplore.backends.base import BackendError
from ttexplore.errors import Cancelled, TTExploreError
from ttexplore.exploration import Exploration
from ttexplore.porting import PortingCheck, PortingChecks, checklist

FOLDER = Path(ttexplore.porting_kernels.__file__).parent


def add_later() -> Any:
    """A bias that is added in a launch of its own."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), D: T.Tensor((64, 64), "bfloat16"),
        P: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A[by * 64, 0], a)
            T.copy(B[0, bx * 64], b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, P[by * 64, bx * 64])
        with T.Kernel(1, 1) as (bx, by):
            p = T.alloc_shared((64, 64), "bfloat16")
            d = T.alloc_shared((64, 64), "bfloat16")
            s = T.alloc_fragment((64, 64), "bfloat16")
            T.copy(P[by * 64, bx * 64], p)
            T.copy(D[by * 64, bx * 64], d)
            for i, j in T.Parallel(64, 64):
                s[i, j] = p[i, j] + d[i, j]
            T.copy(s, C[by * 64, bx * 64])

    return kernel


def crossed() -> Exploration:
    """A lowering whose last pass reads each operand of a difference into the buffer of the other one."""
    explored = ttx.explore(difference())
    lowered = explored._lowered
    last = lowered.steps[-1]
    program = renamed("reader", "noc_read_tile", 2, "b")(last.after)
    program = renamed("reader", "noc_read_tile", 2, "a", 1)(program)
    applied = dataclasses.replace(last.applied, after=program)
    steps = (*lowered.steps[:-1], dataclasses.replace(last, applied=applied))
    return dataclasses.replace(explored, _lowerings=(dataclasses.replace(lowered, steps=steps),))


@functools.cache
def example(name: str, arguments: str = "{}", options: str = "{}") -> Exploration:
    """A kernel of the porting table, with arguments and options as JSON."""
    return ttx.explore(f"{FOLDER / name}.py::{name}", options=json.loads(options), **json.loads(arguments))


@functools.cache
def found(explored: Exploration) -> PortingChecks:
    return explored.porting_checks()


def check(explored: Exploration, name: str, launch: int = 0) -> PortingCheck:
    return next(one for one in found(explored) if one.name == name and one.launch == launch)


def line_of(name: str, text: str) -> int:
    """The line of a kernel of the porting table that holds a text."""
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


# A check; a kernel that passes; one that fails with its number, the text of its line, and a word of the advice.
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...], str, str, str]] = {
    "whole tiles": (("gemm",), ("edges",), "A: 70x100 in 96x128, 43% padding", "A: T.Tensor", "multiples of 32"),
    "formats of tiles": (
        ("gemm",), ("gemm", '{"dtype": "float16"}'),
        "A: float16 is stored as Float16_b, B: float16 is stored as Float16_b, C: float16 is stored as Float16_b",
        "A: T.Tensor", "Use bfloat16",
    ),
    "pages as stored": (
        ("gemm",), ("gemm", "{}", '{"layouts": {"B": {"page": "row"}}}'),
        "B: 128 KiB in rows are converted on the chip", "B: T.Tensor", "option of the lowering (layouts)",
    ),
    "double buffering": (
        ("gemm",), ("gemm", "{}", '{"cb_depth": {"a": 1}}'), "a: 1 block deep, 8 blocks on a core",
        "a = T.alloc_shared", "num_stages=2",
    ),
    "accumulator in DST": (
        ("gemm",), ("gemm", '{"block_M": 128, "block_N": 128}'), "an accumulator of 16 tiles, DST holds 4", "T.gemm",
        "Make the block smaller",
    ),
    "accumulation": (
        ("gemm",), ("gemm", "{}", '{"accumulate_dtype": "bfloat16"}'), "HiFi4, sums of 16 bits", "T.gemm",
        "fragment of float32",
    ),
    "load of the cores": (
        ("scaled_sum", '{"M": 512, "N": 512}'), ("scaled_sum", '{"M": 832, "N": 320}'),
        "65 blocks on 64 of 64 cores, 2 at most: 51% loaded", "T.Kernel", "smaller blocks",
    ),
    "inputs read once": (
        ("scaled_sum", '{"M": 512, "N": 512}'), ("gemm",),
        "1,024 KiB read of inputs of 256 KiB, 4.0 times", "T.Kernel", "option multicast",
    ),
    "issue rate": (
        ("gemm",), ("lower_triangle",), "instructions of the processors cost 66% of the time", "T.Kernel",
        "Move whole blocks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_passes_and_one_fails(name: str) -> None:
    passing, failing, number, text, advice = CASES[name]
    good, bad = check(example(*passing), name), check(example(*failing), name)
    assert good.verdict == "pass", good
    assert (bad.verdict, bad.number) == ("fail", number)
    assert bad.line is not None
    assert (Path(bad.line.file).stem, bad.line.line) == (failing[0], line_of(failing[0], text))
    assert advice in bad.advice


def test_every_check_has_both_kernels() -> None:
    of_their_own = {"fused epilogue", "results", "roofline"}
    assert {*CASES} | of_their_own == {name for checks in checklist().values() for name in checks}


def test_an_epilogue_is_fused_or_costs_a_tensor() -> None:
    fused = check(example("gemm_epilogue"), "fused epilogue")
    assert (fused.verdict, fused.number) == ("pass", "1 line before the product is stored")
    assert fused.line is not None
    assert fused.line.line == line_of("gemm_epilogue", "T.max")
    later = ttx.explore(add_later())
    assert check(later, "fused epilogue", 0).verdict == "not applicable"
    apart = check(later, "fused epilogue", 1)
    assert (apart.verdict, apart.number) == ("fail", "P: 8 KiB are stored by a product and loaded again")
    assert "in T.Parallel before the accumulator is copied" in apart.advice
    # A product that is stored as it is, and launches without one.
    assert check(example("gemm"), "fused epilogue").number == "the product is stored as it is"
    assert check(example("two_phases"), "fused epilogue", 1).number == "no T.gemm"


def test_results_are_those_of_the_kernel() -> None:
    assert check(example("gemm"), "results").verdict == "pass"
    wrong = check(crossed(), "results")
    assert wrong.verdict == "fail"
    assert wrong.number.startswith("E1 finalize_persistent_signature differs from the reference")
    skipped = next(one for one in example("gemm").porting_checks(run=False) if one.name == "results")
    assert (skipped.verdict, skipped.number) == ("not applicable", "nothing was executed")


def test_the_roofline_says_what_bounds() -> None:
    large = ttx.explore(f"{FOLDER}/scaled_sum.py::scaled_sum", M=2048, N=2048).porting_checks(run=False)
    near = next(one for one in large if one.name == "roofline")
    assert near.verdict == "pass", near
    far = check(example("scaled_sum"), "roofline")
    assert far.verdict == "fail"
    estimate = example("scaled_sum").estimate()
    assert far.number.endswith(
        f"{estimate.us / estimate.roofline_us:.1f} times the roofline, bound by {estimate.bound}"
    )
    bound = check(example("lower_triangle"), "roofline")
    assert bound.number.endswith("bound by RISC-V")
    assert bound.advice == check(example("lower_triangle"), "issue rate").advice


def test_what_does_not_apply_says_why() -> None:
    gathered = example("gathered_rows")
    for name in ("inputs read once", "roofline", "issue rate"):
        one = check(gathered, name)
        assert one.verdict == "not applicable"
        assert one.number.startswith("a branch in the reader depends on elements of tensors")
        assert one.line is not None
    assert check(gathered, "accumulation").number == "no T.gemm"
    assert check(example("sharded"), "inputs read once").number == "no input is in DRAM"


def test_names_mean_nothing() -> None:
    """The same kernel with other names of tensors and buffers: the same verdicts and lines."""
    text = example("gemm_epilogue").kernel.source.text
    for name, other in (("bias", "c_partials"), ("row", "zeros"), ("a", "out")):
        text = "\n".join(_renamed(line, name, other) for line in text.split("\n"))
    renamed_one = example("gemm_epilogue").edited(text)
    wanted = [(one.name, one.verdict) for one in found(example("gemm_epilogue"))]
    assert [(one.name, one.verdict) for one in renamed_one.porting_checks(run=False) if one.name != "results"] == [
        one for one in wanted if one[0] != "results"
    ]


def _renamed(line: str, name: str, other: str) -> str:
    return re.sub(rf"\b{name}\b(?!=)", other, line)


def test_the_checklist_as_text_and_html() -> None:
    bad, text = found(example("edges")), str(found(example("edges")))
    assert not bad
    assert text.startswith("porting checklist: 6 passed, 3 failed, 3 not applicable\ntile shapes and dtypes\n  ✖ whole")
    assert "Make the last two sizes multiples of 32" in text
    html = bad._repr_html_()
    assert 'aria-label="not applicable"' in html
    assert "<td>A: 70x100 in 96x128, 43% padding</td>" in html
    assert "launch" not in text.split("\nlaunch\n")[0]
    several = found(example("two_phases"))
    assert "✔ launch 1  whole tiles" in str(several)
    assert '<th scope="col">launch</th>' in several._repr_html_()
    assert [one.name for one in bad.failed] == ["whole tiles", "load of the cores", "roofline"]
    good = ttx.explore(f"{FOLDER}/scaled_sum.py::scaled_sum", M=2048, N=2048).porting_checks(run=False)
    assert good


def test_errors_are_raised() -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Cancelled):
        example("gemm").porting_checks(cancel=stopped)
    with pytest.raises(BackendError, match="time limit"):
        example("gemm").porting_checks(time_limit_seconds=1e-9)
    broken = ttx.explore(f"{FOLDER}/gemm.py::gemm", block_M=2048, block_N=2048, M=2048, N=2048)
    assert broken.error is not None
    with pytest.raises(TTExploreError, match=str(broken.error).split("\n")[0].split(": ")[-1][:20]):
        broken.porting_checks()
