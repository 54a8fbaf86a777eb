"""The public API: what a user does with an exploration."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import copy_block, elementwise, gemm, two_outputs
from tests.steps import LETTERS
from ttexplore.backends.base import KernelFault
from ttexplore.backends.ttnn import Ttnn
from ttexplore.errors import ResourceError, UsageError
from ttexplore.notes import Note
from ttexplore.plan import Plan
from ttexplore.record import from_json


def test_steps_by_index_name_and_letter() -> None:
    exploration = ttx.explore(gemm())
    assert exploration.steps["C1"] is exploration.steps["lower_shared_to_cb"] is exploration.steps[LETTERS.index("C1")]
    assert [step.letter for step in exploration.steps] == LETTERS
    options = exploration.steps["B1"].options
    assert (options["policy"], options["cores"], options["core_offset"]) == (None, None, (0, 0))
    with pytest.raises(UsageError, match="there is no step 'Z9'"):
        exploration.steps["Z9"]


def test_fork_changes_one_option() -> None:
    exploration = ttx.explore(gemm(256, 256, 64, 64, 64, 32))
    forked = exploration.fork(at="B1", policy="strided", cores=(2, 2))
    assert forked.plan.partition is not None
    assert forked.plan.partition.policy == "strided"
    assert len(forked.plan.partition.cores) == 4
    assert exploration.plan.partition is not None
    assert exploration.plan.partition.policy == "contiguous"
    assert forked.run().passed
    assert "~ policy" in ttx.compare(exploration, forked)
    assert re.search(r"16 of 64 cores, 1 item each +4 of 4 cores, 4 items each", str(ttx.compare(exploration, forked)))
    with pytest.raises(UsageError, match="layout_aware_work_partition has no option 'stages'"):
        exploration.fork(at="B1", stages=3)
    with pytest.raises(UsageError, match="there is no option 'polcy'"):
        exploration.fork(polcy="strided")


def test_run_with_own_inputs() -> None:
    exploration = ttx.explore(elementwise(lambda a, b: a + b, "float16"))
    a = np.full((128, 64), 1.5)
    b = np.full((128, 64), 0.25)
    run = exploration.run([a, b])
    assert run.passed
    assert run.outputs[0].dtype == np.float16
    np.testing.assert_array_equal(run.outputs[0], np.full((128, 64), 1.75))
    with pytest.raises(UsageError, match="the number of inputs is 1, but the kernel takes 2"):
        exploration.run([a])
    with pytest.raises(UsageError, match=r"input 1 \(B\) has the shape \(3,\), but the kernel takes \(128, 64\)"):
        exploration.run([a, np.zeros(3)])
    with pytest.raises(UsageError, match="there is no backend 'gpu'"):
        exploration.run(backend="gpu")


def test_two_outputs_in_order_and_in_their_dtypes() -> None:
    run = ttx.explore(two_outputs()).run(backend="interpreter")
    assert [output.dtype for output in run.outputs] == [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)]


@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi2", "HiFi3"])
def test_lower_fidelities_pass_by_their_own_precision(fidelity: str) -> None:
    run = ttx.explore(gemm(), options={"math_fidelity": fidelity}).run()
    assert run.passed, run.message
    assert (run.max_rel_error > 0.02) == (fidelity == "LoFi")


def test_only_a_device_takes_a_device() -> None:
    exploration = ttx.explore(copy_block())
    with pytest.raises(UsageError, match="the backend emulator takes no device"):
        exploration.run(device="wolfpine")
    with pytest.raises(UsageError, match="there is no device 'gpu'"):
        Ttnn("gpu")
    assert [side.name for side in exploration.run().sides] == ["emulator against reference"]


@pytest.mark.parametrize("backend", ["reference", "interpreter", "emulator"])
def test_backends_copy_exactly(backend: str) -> None:
    exploration = ttx.explore(copy_block("float32"))
    run = exploration.run(backend=backend, seed=3)
    np.testing.assert_array_equal(run.outputs[0], exploration.inputs(seed=3)[0])


def test_export_is_complete_and_the_plan_reads_back(tmp_path: Path) -> None:
    exploration = ttx.explore(gemm())
    files = exploration.export(tmp_path / "out")
    assert sorted(file.name for file in files) == sorted(
        ["reader.cpp", "compute.cpp", "writer.cpp", "main.cpp", "tt.plan.json", "run_ttnn.py"]
    )
    data = json.loads((tmp_path / "out" / "tt.plan.json").read_text())
    fields = {name: data[name] for name in Plan.__dataclass_fields__}
    assert from_json(Plan, fields) == exploration.plan
    compile((tmp_path / "out" / "run_ttnn.py").read_text(), "run_ttnn.py", "exec")


def test_unwritable_folder(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        ttx.explore(copy_block()).export(occupied / "out")
    assert list(tmp_path.iterdir()) == [occupied]


def test_a_failed_step_keeps_the_earlier_ones() -> None:
    exploration = ttx.explore(gemm(4096, 4096, 4096, 2048, 2048, 2048))
    assert isinstance(exploration.error, ResourceError)
    assert [step.letter for step in exploration.steps] == ["A0", "A1", "A2"]
    assert exploration.steps["A1"].plan.layouts
    with pytest.raises(UsageError, match="step C1 was not reached"):
        exploration.steps["C1"]
    with pytest.raises(ResourceError, match="of L1"):
        exploration.run()
    assert "failed at A2" in repr(exploration)
    assert exploration._repr_html_()


def test_a_fault_on_the_emulator_names_the_kernel_line() -> None:
    """The line of C++ that faults leads back to the line of the kernel that it came from."""
    exploration = ttx.explore(gemm())
    reader = exploration.files["reader.cpp"]
    broken = tuple(
        dataclasses.replace(line, text="") if "async_read_barrier" in line.text else line for line in reader.lines
    )
    files = {**exploration.files, "reader.cpp": dataclasses.replace(reader, lines=broken)}
    exploration._lowered.__dict__["files"] = files
    with pytest.raises(KernelFault, match=r"spine\.py:\d+: .*NoC reads into it are in flight") as caught:
        exploration.run()
    span = caught.value.span
    assert span is not None
    assert "T.copy(" in Path(span.file).read_text().splitlines()[span.line - 1]


def test_code_is_text_with_origins_and_pictures_are_svg() -> None:
    exploration = ttx.explore(gemm())
    code = exploration.code["reader"]
    assert code == exploration.files["reader.cpp"].text
    assert len(code.splitlines()) == len(code.lines)
    assert code._repr_html_().count("async_read") >= 2
    for drawing in (exploration.core_map, exploration.dataflow, exploration.l1_map):
        assert ElementTree.fromstring(drawing._repr_svg_()).tag.endswith("svg")
    failed = ttx.explore(gemm(4096, 4096, 4096, 2048, 2048, 2048))
    with pytest.raises(UsageError, match="the work is not partitioned yet"):
        _ = failed.core_map


def test_text_fits_one_screen() -> None:
    lines = str(ttx.explore(gemm())).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


def test_a_plan_is_text_that_can_be_read() -> None:
    exploration = ttx.explore(gemm())
    first, *lines = str(exploration.plan).splitlines()
    assert first == f"plan of {exploration.kernel.name} for wormhole_n150"
    assert repr(exploration.plan) == str(exploration.plan)
    for layout in exploration.plan.layouts:
        assert any(f"{layout.name}: {layout.role}, " in line and layout.dtype in line for line in lines)
    for buffer in exploration.plan.buffers:
        line = next(line for line in lines if f"{buffer.name}: {buffer.stages} blocks of " in line)
        assert line.endswith(f"{buffer.block_pages} tiles, {buffer.producer} to {buffer.consumer}")
    heads = [line.split()[0] for line in lines if line[2] != " "]
    assert heads == ["tensors", "buffers", "work", "compute", "choices", "notes"]
    # What is not decided yet is left out.
    assert str(Plan("k", "n")) == "plan of k for n"
    # A saved plan may have notes that would write to the terminal.
    assert str(Plan("k", "n", notes=(Note("unused", {}, "\x1b[2J\u202eé\n"),))).splitlines()[1:] == [
        "  notes    ⟨U+001B⟩[2J⟨U+202E⟩é⟨U+000A⟩"
    ]


def test_records_are_not_printed_whole() -> None:
    exploration = ttx.explore(copy_block())
    for value in (exploration.trace, exploration.files, exploration.trace.steps[0]):
        assert len(repr(value)) < 1_000
    assert repr(exploration.files["reader.cpp"]) == "Listing(language='cpp', name='reader.cpp')"


def test_reading_plans_needs_no_tvm() -> None:
    modules = "ttexplore.plan, ttexplore.record, ttexplore.views.steps.exploration"
    code = f"import sys, {modules}; assert 'tvm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_view_is_a_place_in_the_explorer() -> None:
    exploration = ttx.explore("notebooks/kernels/gemm.py::matmul", M=128, N=128, K=128, block_M=64, block_N=64)
    number = LETTERS.index("D5")
    chosen = exploration.view(tab="what if", step=number, pin=27).place
    assert dict(chosen) == {"tab": "What if", "step": "D5", "pin": "27"}
    assert dict(exploration.view(step="lower_cb_intrinsics").place) == {"tab": "Steps", "step": "D3"}
    assert dict(exploration.view(file="compute.cpp").place) == {"tab": "Code", "file": "compute.cpp"}
    assert repr(exploration.view()) == repr(exploration)
    widget = exploration.widget(exploration.view(pin=25).place)
    assert widget.place == {"pin": "25"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tab": "Stepps"}, "stepps"), ({"tab": 3}, "tab is 3"), ({"step": "Z9"}, "there is no step"),
        ({"pin": 9}, "the line to pin is 9"), ({"file": "compute"}, "there is no file 'compute'"),
    ]  # fmt: skip
    for place, message in wrong:
        with pytest.raises(UsageError) as caught:
            exploration.view(**place)
        assert message in str(caught.value)
    with pytest.raises(UsageError) as caught:
        exploration.view(pin=9)
    assert caught.value.hint.startswith("the line to pin takes a line of the kernel that the lowering uses: 1")


def test_a_report_takes_explorations() -> None:
    for wrong in ((), (3,)):
        with pytest.raises(UsageError, match="what to report is"):
            ttx.report("report.html", *wrong)  # pyright: ignore[reportArgumentType]
