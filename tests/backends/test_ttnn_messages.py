"""What is made of the words of the SDK, the simulators and the watcher; what a simulator would get wrong is refused."""

from __future__ import annotations

import dataclasses
import linecache
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.backends.op_programs import FORMATS, operations_program
from tests.corpus import elementwise, gemm
from tests.corpus.explored import CASES, NAMES, explored
from ttexplore.backends.base import KernelFault, Program
from ttexplore.backends.ttnn import Ttnn
from ttexplore.backends.ttnn.backend import (
    check_fit,
    gist,
    not_modelled,
    program_too_large,
    read_outputs,
    refusal,
    write_program,
)
from ttexplore.backends.ttnn.hang import describe_hang, watcher_states
from ttexplore.backends.ttnn.session import DeviceEnded, DeviceHang, last_words
from ttexplore.errors import BackendError
from ttexplore.ops import OPS
from ttexplore.plan import KERNEL_ROLES

LOG = """2026-11-21 04:56:57.536 | warning  |             UMD | Chip 0 has inconsistent harvesting. (cluster.cpp:13)
[run.sh] starting Wolfpine wormhole server on tcp://vm:57173
[server] listening on tcp://vm:57173
2026-11-21 04:56:58.117 | warning  |          Fabric | No descriptor file found. Searched:
  - ./tests/default.textproto
TT_CLUSTER_NAME not set
 (physical_grouping_descriptor_core.cpp:908)
"""

REPORT = """[DEADLOCK cycle=118814] no observable progress for 50000 cycles
  BRISC: oscillating in [0x8ccc, 0x8cdc] (5 unique PCs) — likely polling
  NCRISC: parked in a recognised firmware wait loop [0x5a00, 0x5a2c] — polling a value nothing has written
  TRISC0: oscillating in [0xa63c, 0xa64c] (5 unique PCs) — likely polling
  TRISC1: frozen at 0xac14 (memory stall or `j .`)
  TRISC2: frozen at 0xb370 (memory stall or `j .`)
"""

DUMP = """15 at 42.361s
Device 0 worker core(x= 0,y= 0) virtual(x=18,y=18):    W,   W,   W,   W,   W  rmsg:H0D|bnt h_id:  0 smsg:DDDD
k_ids:  0|  0|  0|  0|  0
Device 0 worker core(x= 1,y= 0) virtual(x=19,y=18): CWFW,   W,   K,MWDD, ABC  rmsg:H1G|BNT h_id:  1 smsg:DGGG
k_ids:  3|  1|  2|  2|  2
"""


def test_last_words_leave_out_what_is_always_said() -> None:
    assert last_words(LOG) == ""
    assert last_words(LOG + "[4602] ERROR: UndefinedBehavior: tensix_unpacr\n") == (
        "[4602] ERROR: UndefinedBehavior: tensix_unpacr"
    )


@pytest.mark.parametrize("data_format", [0, 8])
def test_a_limit_of_a_simulator_is_told_as_one(data_format: int) -> None:
    words = f"ended with exit status 1 while running: [4] ERROR: unpack_to_dst=0 in_data_format={data_format}"
    told = not_modelled("ttsim", DeviceEnded("B023", words))
    assert told.message == f"ttsim rejects 32-bit tiles that are unpacked to DST on Wormhole ({words})"
    assert told.hint == "use device='wolfpine', a card, or a Blackhole target"
    large = "the simulator ended while running: OverflowError: cannot convert float infinity to integer"
    told = not_modelled("wolfpine", DeviceEnded("B023", large))
    assert (told.code, told.hint) == ("TTX-B025", "use smaller numbers as inputs, device='ttsim', or a card")
    other = DeviceEnded("B023", "ended by signal SIGKILL")
    assert not_modelled("ttsim", other) is other
    assert not_modelled("wolfpine", DeviceEnded("B023", words)).message == words


def test_the_gist_of_an_exception_leaves_out_where_it_was_thrown() -> None:
    text = "TT_FATAL @ /project/a.cpp:12: x\ninfo:\nOut of Memory: 12 B\nbacktrace:\n --- f()\n"
    assert gist(text) == "Out of Memory: 12 B"


def test_a_program_that_does_not_fit_a_core() -> None:
    told = program_too_large(
        "info:\nProgram size (95280) too large for kernel config buffer (70656) on TENSIX, 24624 B over:\n"
        "circular buffers   272 B\nkernel text   94960 B\n  brisc   636 B\n  trisc1   62404 B\n"
    )
    assert told is not None
    assert told.message == (
        "the program takes 95,280 B of a core, which has room for 70,656 B: writer 636 B, compute (math) 62,404 B"
    )
    assert told.code == "TTX-B026"
    assert program_too_large("Out of Memory: 12 B") is None


def test_a_hang_is_told_from_the_simulators_report() -> None:
    def unasked() -> DeviceHang | None:
        raise AssertionError("the report tells enough")

    told = describe_hang(DeviceHang(12.3, LOG + REPORT, ""), unasked)
    assert told.message == (
        "the program did not end within 12 seconds: writer polls for something that never happens; reader has ended; "
        "compute (unpack) polls for something that never happens; compute (math) makes no progress; compute (pack) "
        "makes no progress"
    )


def test_a_hang_is_told_from_the_watcher() -> None:
    assert watcher_states(DUMP) == {
        "BRISC": "waits for pages in a circular buffer (wait_front) on core (1, 0)",
        "NCRISC": "has ended on core (1, 0)",
        "TRISC0": "runs on core (1, 0)",
        "TRISC1": "waits for the matrix unit on core (1, 0)",
        "TRISC2": "is at waypoint ABC on core (1, 0)",
    }
    told = describe_hang(DeviceHang(60, LOG, ""), lambda: DeviceHang(10, "", DUMP))
    assert told.message.startswith("the program did not end within 60 seconds: writer waits for pages in a circular")
    assert describe_hang(DeviceHang(60, LOG, ""), lambda: None).message == (
        "the program did not end within 60 seconds, and it is unknown where it waits"
    )


@pytest.fixture(scope="module")
def spilled() -> ttx.Exploration:
    """Accumulates in L1, through the packer."""
    return ttx.explore(gemm(128, 128, 128, 128, 128, 32), options={"accumulate": "l1", "cores": (1, 1)})


def test_what_a_simulator_does_not_model_is_refused_at_its_line(spilled: ttx.Exploration) -> None:
    with pytest.raises(KernelFault) as caught:
        spilled.run(backend="ttnn", device="wolfpine")
    fault = caught.value
    assert fault.message == ("wolfpine ignores the packer's accumulation in L1: only the last partial sum would remain")
    assert fault.hint == "lower with accumulate='reload', or use device='ttsim' or a card"
    assert fault.kernel == "compute"
    assert fault.span is not None
    assert "T.gemm(a, b, c" in linecache.getline(str(fault.span.file), fault.span.line)


def test_a_format_that_a_simulator_does_not_model_is_refused_at_its_buffer() -> None:
    exploration = ttx.explore(elementwise(lambda a, b: a + b), options={"layouts": {"A": {"dtype": "bfp8_b"}}})
    with pytest.raises(BackendError, match="wolfpine does not model Bfp8_b, the format of circular buffer") as caught:
        exploration.run(backend="ttnn", device="wolfpine")
    assert caught.value.hint == "use device='ttsim' or a card"
    assert caught.value.span is not None


def test_a_choice_in_16_bit_dst_is_not_for_wolfpine() -> None:
    kernel = elementwise(lambda a, b: T.if_then_else(a > b, a, b))
    exploration = ttx.explore(kernel, options={"accumulate_dtype": "bfloat16", "cores": (1, 1)})
    assert "where_tile<DataFormat::Float16_b>(" in exploration.code["compute"].text
    with pytest.raises(KernelFault, match=r"wolfpine does not model T\.if_then_else in 16-bit DST"):
        exploration.run(backend="ttnn", device="wolfpine")


def reducing(name: str) -> Program:
    """A program with one reduction on the SFPU."""
    form = next(form for form in FORMATS if OPS[f"tt.{name}"] in form.ops)
    return operations_program(dataclasses.replace(form, ops=(OPS[f"tt.{name}"],)))


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("sfpu_reduce_sum_row", "wolfpine sums tiles wrongly on the SFPU", "add up on the FPU"),
        ("sfpu_reduce_sum_col_bf16", "wolfpine sums tiles wrongly on the SFPU", "add up on the FPU"),
        ("sfpu_reduce_min_row_int32", "compare-and-swap cannot be reversed", "reduce the negated numbers"),
        ("sfpu_reduce_max_col", "compare-and-swap cannot be reversed", "reduce the negated numbers"),
    ],
)
def test_reductions_that_wolfpine_does_not_model(name: str, message: str, hint: str) -> None:
    with pytest.raises(KernelFault, match=message) as caught:
        Ttnn("wolfpine").run(reducing(name), [np.zeros((32, 32), np.float32)] * 2)
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_a_program_is_kept_by_its_content(spilled: ttx.Exploration, tmp_path: Path) -> None:
    texts = {role: spilled.code[role].text for role in ("reader", "compute", "writer")}
    folder = write_program(Program(texts, spilled.plan), tmp_path)
    assert write_program(Program(texts, spilled.plan), tmp_path) == folder
    assert write_program(Program({**texts, "reader": texts["reader"] + "//"}, spilled.plan), tmp_path) != folder
    assert (folder / "compute.cpp").read_text(encoding="utf-8") == texts["compute"]
    assert (folder / "run_ttnn.py").read_text(encoding="utf-8") == spilled.files["run_ttnn.py"].text


def test_a_device_must_fit_the_plan() -> None:
    plan = ttx.explore(elementwise(lambda a, b: a + b)).plan
    check_fit({"architecture": "wormhole_b0", "grid": [8, 9]}, plan)
    with pytest.raises(BackendError, match="the device is a blackhole, but the program is for wormhole_n150"):
        check_fit({"architecture": "blackhole", "grid": [13, 10]}, plan)
    with pytest.raises(BackendError, match=r"uses core \(1, 0\), but the device has 1x9 cores"):
        check_fit({"architecture": "wormhole_b0", "grid": [1, 9]}, plan)


@pytest.mark.parametrize("name", [name for name in NAMES if CASES[str(name.values[0])].on_chip])
def test_the_corpus_on_a_chip_leaves_out_what_the_simulator_has_wrongly(name: str) -> None:
    exploration = explored(name)
    texts = {role: code.text for role, code in exploration.code.items() if role in KERNEL_ROLES}
    assert refusal(Program(texts, exploration.plan), "wolfpine") is None


def test_outputs_of_a_wrong_shape_are_refused(tmp_path: Path) -> None:
    plan = ttx.explore(elementwise(lambda a, b: a + b)).plan
    with pytest.raises(BackendError, match="the device returned no tensor C"):
        read_outputs(tmp_path, plan)
    np.save(tmp_path / "C.npy", np.zeros((64, 128), np.float32))
    with pytest.raises(BackendError, match=r"returned C with shape \(64, 128\), but the tensor has shape \(128, 64\)"):
        read_outputs(tmp_path, plan)
    np.save(tmp_path / "C.npy", np.zeros((128, 64), np.float32))
    assert read_outputs(tmp_path, plan)[0].dtype == "bfloat16"


def test_without_an_environment_the_mending_command_is_told(tmp_path: Path) -> None:
    exploration = ttx.explore(elementwise(lambda a, b: a + b))
    with pytest.raises(BackendError) as caught:
        exploration.run(backend="ttnn", environment=tmp_path)
    assert caught.value.message == f"there is no device environment in {tmp_path}: it is not set up"
    assert caught.value.hint == f"ttexplore setup device --folder {tmp_path}"
    assert Ttnn(environment_folder=tmp_path).missing() == f"{caught.value.message}: {caught.value.hint}"
