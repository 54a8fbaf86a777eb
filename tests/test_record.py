"""Records: JSON both ways, and what does not fit says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ttexplore.errors import KernelError
from ttexplore.plan import (
    CircularBuffer,
    CoreWork,
    GraphEdge,
    GraphNode,
    Partition,
    Plan,
    TileGraph,
)
from ttexplore.record import ErrorRecord, Line, Listing, Origin, Span, StepRecord, Trace, from_json, to_json

SPAN = Span("kernel.py", 12, 5, 12, 30)
LISTING = Listing("tir", (Line("for k in T.serial(4):", (Origin(SPAN, "derived"),), 3), Line("")), "B2")


def example_trace() -> Trace:
    step = StepRecord(
        index=5, name="grid_to_core_grid", letter="B2", stage="B", summary="one loop per core", docstring="Text.",
        changed_ir=True, changed_plan=False, seconds=0.25, before=LISTING, after=LISTING, plan_before={"kernel": "f"},
        plan_after={"kernel": "f", "list": [1, 2.5, None, True]}, options={"policy": "strided"},
        error=ErrorRecord("KernelError", "no", "yes", SPAN),
    )  # fmt: skip
    return Trace("f", "wormhole_n150", LISTING, (step,), {"reader.cpp": LISTING}, {"kernel": "f"}, {"numpy": "2.4"})


def test_trace_survives_json() -> None:
    trace = example_trace()
    assert from_json(Trace, json.loads(json.dumps(to_json(trace)))) == trace


def test_plan_survives_json() -> None:
    plan = Plan(
        "f",
        "wormhole_n150",
        buffers=(CircularBuffer("A", 4, 2, "Float16_b", "reader", "compute", 0, origin=SPAN),),
        partition=Partition(
            (2, 3), "contiguous", "global", (8, 8), (CoreWork(0, 1, 6, {"work_start": 0}),), ("work_start",)
        ),
        graph=TileGraph((GraphNode("A", "tensor"),), (GraphEdge("A", "reader", None),)),
    )
    assert from_json(Plan, json.loads(json.dumps(to_json(plan)))) == plan


def test_listing_text() -> None:
    assert LISTING.text == str(LISTING) == "for k in T.serial(4):\n\n"


def test_span_prints_file_and_line() -> None:
    assert str(SPAN) == "kernel.py:12"


def test_spans_sort_by_place() -> None:
    assert sorted([Span("b", 1, 1, 1, 2), SPAN, Span("b", 1, 0, 1, 2)])[0].line == 1


def test_value_without_json_form() -> None:
    with pytest.raises(TypeError, match=r"^complex has no JSON form$"):
        to_json({"value": 1j})


def test_data_of_the_wrong_type() -> None:
    data = to_json(SPAN)
    data["line"] = "twelve"
    with pytest.raises(TypeError, match=r"^'twelve' is not a <class 'int'>$"):
        from_json(Span, data)


def test_error_text_names_line_and_way_out() -> None:
    error = KernelError("K002", "the block has 33 rows", hint="use a multiple of 32").at(SPAN)
    assert str(error) == "kernel.py:12: the block has 33 rows\n  hint: use a multiple of 32 [TTX-K002]"
    assert error.record() == ErrorRecord(
        "KernelError", "the block has 33 rows", "use a multiple of 32", SPAN, "TTX-K002"
    )
    assert error.at(Span("other.py", 1, 1, 1, 1)).span == SPAN


def test_records_load_without_other_packages() -> None:
    """A saved trace opens with the standard library alone."""
    # A package without its __init__, which imports everything.
    folder = str(Path(__file__).parents[1] / "ttexplore")
    code = (
        "import sys, types; sys.modules['ttexplore'] = package = types.ModuleType('ttexplore')\n"
        f"package.__path__ = [{folder!r}]\nimport ttexplore.record"
    )
    # -S leaves out site-packages, -I the current folder.
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
