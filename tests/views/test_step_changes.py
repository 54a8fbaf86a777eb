"""Which steps of two lowerings do something else: those that decide, not those that pass on what was decided."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.steps import after, before
from ttexplore import Exploration, explore
from ttexplore.errors import UsageError
from ttexplore.views.steps.step_changes import step_changes

_ATTENTION = "notebooks/gallery/attention.py::causal_attention"


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    return explore("notebooks/kernels/gemm.py::matmul", M=256, N=256, K=128, block_M=64, block_N=64)


@pytest.fixture(scope="module")
def attention() -> Exploration:
    return explore(_ATTENTION)


# D1 chooses by predicted time which kernel loads an input.
_OTHER_LOADER = {"D1": "program", "D2": "plan", "E1": "plan"}


def marks(now: Exploration, **options: Any) -> dict[str, str]:
    """The kinds of the steps that do not do the same, by letter."""
    found = step_changes(now.trace.steps, now.fork(**options).trace.steps)
    return {one.letter: one.kind for one in found if one.kind not in ("same", "carried")}


@pytest.mark.parametrize(("options", "expected"), [
    ({"stages": 3}, {"A2": "plan"}),
    ({"cb_depth": {"A_shared": 4}}, {"A2": "plan"}),
    ({"math_fidelity": "LoFi"}, {"A2": "plan"}),
    ({"layouts": {"A": {"memory": "l1", "shard": "height"}}}, {"A1": "plan", **_OTHER_LOADER}),
    ({"cores": (2, 2)}, {"B1": "plan"}),
    ({"policy": "strided"}, {"B1": "plan", "B2": "program"}),
    ({"order": "column_major"}, {"B1": "plan", "B2": "program"}),
    ({"accumulate_dtype": "bfloat16"}, {"A2": "plan", "C2": "program", "D5": "program"}),
    ({"dst_full_sync": True}, {"A2": "plan", "D5": "program"}),
    ({"subblock": (1, 2)}, {"D5": "program"}),
    ({"target": "blackhole_p150"}, {"B1": "plan", **_OTHER_LOADER}),
    ({"multicast": "all", "loaded_by": "reader"}, {"B1": "plan", "D3": "program", "E1": "plan"}),
    ({"eltwise": "sfpu"}, {}),
    ({}, {}),
])  # fmt: skip
def test_one_option_marks_the_steps_that_decide_differently(
    gemm: Exploration, options: dict[str, Any], expected: dict[str, str]
) -> None:
    assert marks(gemm, **options) == expected


def test_steps_after_a_new_operation_are_marked_where_they_place_it(attention: Exploration) -> None:
    """On the FPU the sums of attention take one more circular buffer, which has to be numbered, filled and set up."""
    assert marks(attention, eltwise="fpu") == {
        "A2": "plan", "C1": "program", "C2": "program", "C3": "plan", "D3": "program", "D4": "program", "D5": "program"
    }  # fmt: skip
    assert marks(attention, policy="strided") == {"B1": "plan", "B2": "program"}


def test_what_only_passes_on_differences_says_so(gemm: Exploration) -> None:
    found = {one.letter: one for one in step_changes(gemm.trace.steps, gemm.fork(policy="strided").trace.steps)}
    assert [found[letter].kind for letter in ("A0", "A3", "B1", "C1", "E1")] == [
        "same", "same", "plan", "carried", "carried"
    ]  # fmt: skip
    assert found["B1"].plan[0] == ("partition.policy", "contiguous", "strided")
    assert found["B1"].words == "decides differently: partition.policy contiguous → strided, partition.step 1 → 16"


def test_a_lowering_that_fails_stops_there(gemm: Exploration) -> None:
    found = step_changes(gemm.trace.steps, gemm.fork(stages=400).trace.steps)
    assert [one.glyph for one in found] == [*["="] * len(before("A2")), "✖", *["✖"] * len(after("A2"))]


def test_comparisons_name_the_steps_and_show_each_step_and_file(gemm: Exploration) -> None:
    comparison = ttx.compare(gemm, gemm.fork(policy="strided"))
    assert comparison.files == ("reader.cpp", "writer.cpp")
    text = str(comparison.steps)
    assert "● B2   grid_to_core_grid" in text
    assert "only passes on earlier differences" in text
    assert "rewrites differently" in comparison.steps._repr_html_()
    step = str(comparison.diff("B2"))
    assert "-         work = work_start + item\n+         work = work_start + item * 16" in step
    assert str(comparison.diff("grid_to_core_grid")) == step
    assert "--- C++: +1 −1" in str(comparison.diff("reader.cpp"))
    assert "<h4>C++" in comparison.diff("reader.cpp")._repr_html_()
    assert "no change" in str(comparison.diff("compute.cpp"))
    with pytest.raises(UsageError, match="there is no step or file 'B9'"):
        comparison.diff("B9")
    with pytest.raises(UsageError, match="a step or a file is 5"):
        comparison.diff(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="only one of the lowerings has E1"):
        ttx.compare(gemm, gemm.fork(stages=400)).diff("E1")


def test_any_two_steps_are_compared(gemm: Exploration) -> None:
    text = str(gemm.steps["C1"].diff(gemm.steps["B1"]))
    assert text.startswith("B1 layout_aware_work_partition → C1 lower_shared_to_cb: ")
    # B2 made one of these lines, C1 the other.
    assert '+     work_start = tt.core_value("work_start")' in text
    assert '+     A_shared = T.alloc_buffer((64, 32), "bfloat16", "tt.cb")' in text
    other = gemm.fork(policy="strided")
    assert str(other.steps.B2.diff(gemm.steps.B2)) == str(ttx.compare(gemm, other).diff("B2"))
    with pytest.raises(UsageError, match="the other step is 'B1'"):
        gemm.steps["C1"].diff("B1")  # pyright: ignore[reportArgumentType]
