"""Measured times of a profiler report beside predicted ones: which rows count, what is compared, what is refused."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import copy_block
from tests.corpus.launches import two_products
from tests.corpus.sums import split_k
from ttexplore.cli import main
from ttexplore.clock.estimate import Estimate, LaunchEstimates
from ttexplore.clock.events import ProcessorName
from ttexplore.errors import UsageError

# As the SDK writes it: tracy/process_ops_logs.py of ttnn 0.81.1, without the columns of kernel sizes and counters.
HEAD = (
    "OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "MATH FIDELITY", "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT", "SUB DEVICE ID", "PARALLELIZATION STRATEGY", "HOST START TS", "HOST END TS",
    "HOST DURATION [ns]", "DEVICE FW START CYCLE", "DEVICE FW END CYCLE", "OP TO OP LATENCY [ns]",
    "OP TO OP LATENCY BR/NRISC START [ns]", "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]",
    "DEVICE KERNEL DURATION DM START [ns]", "DEVICE KERNEL DURATION PER CORE MIN [ns]",
    "DEVICE KERNEL DURATION PER CORE MAX [ns]", "DEVICE KERNEL DURATION PER CORE AVG [ns]",
    "DEVICE KERNEL FIRST TO LAST START [ns]", "DEVICE BRISC KERNEL DURATION [ns]", "DEVICE NCRISC KERNEL DURATION [ns]",
    "DEVICE TRISC0 KERNEL DURATION [ns]", "DEVICE TRISC1 KERNEL DURATION [ns]", "DEVICE TRISC2 KERNEL DURATION [ns]",
    "DEVICE ERISC KERNEL DURATION [ns]", "DEVICE COMPUTE CB WAIT FRONT [ns]", "DEVICE COMPUTE CB RESERVE BACK [ns]",
    "DISPATCH TOTAL CQ CMD OP TIME [ns]", "DISPATCH GO SEND WAIT TIME [ns]", "METAL TRACE ID",
    "METAL TRACE REPLAY SESSION ID", "COMPUTE KERNEL SOURCE", "COMPUTE KERNEL HASH", "DATA MOVEMENT KERNEL SOURCE",
    "DATA MOVEMENT KERNEL HASH", "PROGRAM HASH", "PROGRAM CACHE HIT", "PM IDEAL [ns]", "PM COMPUTE [ns]",
)  # fmt: skip
SIZES = {"M": 128, "N": 128, "K": 128, "block_M": 32, "block_N": 32, "block_K": 32}
KERNELS = "DEVICE KERNEL DURATION [ns]"
READER, WRITER = "DEVICE NCRISC KERNEL DURATION [ns]", "DEVICE BRISC KERNEL DURATION [ns]"
UNPACK, MATH, PACK = (f"DEVICE TRISC{number} KERNEL DURATION [ns]" for number in range(3))
COLUMNS = {"reader": READER, "writer": WRITER, "unpack": UNPACK, "math": MATH, "pack": PACK}
OTHERS: tuple[dict[str, Any], ...] = (
    {"OP CODE": "Start of the run", "OP TYPE": "signpost"},
    {"OP CODE": "MatmulDeviceOperation", "DEVICE ID": 0, "CORE COUNT": 8, KERNELS: 1, READER: 1, MATH: "no number"},
)


def generic(kernels: object, **cells: object) -> dict[str, object]:
    """A row of one of our programs; cells by the names of processors, or by columns."""
    row: dict[str, object] = {"OP CODE": "GenericOpDeviceOperation", "OP TYPE": "tt_dnn_device", "DEVICE ID": 0}
    return row | {KERNELS: kernels} | {COLUMNS.get(name, name): cell for name, cell in cells.items()}


def report(folder: Path, rows: Sequence[Mapping[str, object]], head: Sequence[str] = HEAD) -> Path:
    path = folder / "ops_perf_results_2026.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, head, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def estimated(kernel: Any, **options: Any) -> Estimate:
    estimate = ttx.explore(kernel, **options).estimate()
    assert isinstance(estimate, Estimate)
    return estimate


@pytest.fixture(scope="module")
def product() -> Estimate:
    return estimated("notebooks/kernels/gemm.py::matmul", **SIZES)


@pytest.fixture(scope="module")
def launches() -> LaunchEstimates:
    estimate = ttx.explore(two_products()).estimate()
    assert isinstance(estimate, LaunchEstimates)
    return estimate


def test_medians_of_all_runs_beside_what_was_predicted(product: Estimate, tmp_path: Path) -> None:
    here: dict[str, object] = {"DEVICE ARCH": "wormhole_b0", "CORE COUNT": 16}
    rows = [
        generic(9000, reader=4000, unpack=5000, math=6000, pack=7000, writer=8900, **here),
        generic(30000, reader=4400, unpack=5100, math=5000, pack=7700, writer=29000, **here),
        generic(9500, reader=4100, unpack=5200, math=6001, pack="", writer=8000, **here),
    ]
    measured = product.beside(report(tmp_path, [*OTHERS, rows[0], OTHERS[1], *rows[1:]]))
    (launch,) = measured.launches
    assert launch.runs == 3
    assert launch.kernels.measured_us == 9.5
    times = {name: time.measured_us for name, time in launch.processors.items()}
    assert times == {"reader": 4.1, "unpack": 5.1, "math": 6.0, "pack": 7.35, "writer": 8.9}
    assert launch.kernels.predicted_us == pytest.approx(product.us - product.gains_us["launch"])
    assert launch.kernels.ratio == pytest.approx((product.us - product.gains_us["launch"]) / 9.5)
    for name, time in launch.processors.items():
        ends = [group.processors[name].end_us for group in product.cores]
        assert time.predicted_us == max(ends) == launch.predicted[name].end_us
        assert time.difference_us == pytest.approx((times[name] or 0) - max(ends))
        predicted = launch.predicted[name]
        assert predicted.busy_us + sum(predicted.waits_us.values()) == pytest.approx(predicted.end_us, abs=0.01)
    text = str(measured)
    assert re.search(r"\n  reader \(NCRISC\) +\d+\.\d us +4\.1 us +\d\.\d\d +\d+\.\d us +\d+\.\d us\n", text)
    assert "median of 3 runs" in text


@pytest.mark.parametrize(
    ("off", "us", "told"),
    [("reader", 50.0, "50.0 us longer"), ("math", 30.0, "30.0 us longer"), ("writer", -0.3, "0.3 us less")],
)
def test_the_sentence_names_the_processor_that_is_furthest(
    product: Estimate, tmp_path: Path, off: ProcessorName, us: float, told: str
) -> None:
    ends = {name: max(group.processors[name].end_us for group in product.cores) for name in product.cores[0].processors}
    cells = {name: f"{(end + (us if name == off else 0.001)) * 1000:.4f}" for name, end in ends.items()}
    measured = product.beside(report(tmp_path, [generic(60000, **cells)]))
    assert measured.launches[0].furthest == off
    assert measured.summary.startswith(f"largest difference: the {off} takes {told} than the predicted")
    assert "nearly as much" not in measured.summary
    # One that waits for it ends as much later: both are named.
    other: ProcessorName = "pack" if off != "pack" else "math"
    cells[other] = f"{(ends[other] + 0.95 * us) * 1000:.4f}"
    measured = product.beside(report(tmp_path, [generic(60000, **cells)]))
    assert measured.launches[0].furthest == off
    assert f"; {other} nearly as much" in measured.summary


def test_rows_are_launches_in_their_order_on_each_device(launches: LaunchEstimates, tmp_path: Path) -> None:
    rows = [
        generic(1000 + run, reader=100, math=200, **{"DEVICE ID": device, "CORE COUNT": cores})
        for run, device, cores in ((0, 0, 6), (1, 1, 6), (2, 0, 4.0), (3, 1, "4"), (10, 0, 6), (30, 0, 4))
    ]
    first, second = launches.beside(str(report(tmp_path, rows))).launches
    assert (first.runs, first.kernels.measured_us) == (3, 1.001)
    assert (second.runs, second.kernels.measured_us) == (3, 1.003)
    assert [each.kernel for each in (first, second)] == [each.kernel for each in launches.launches]
    assert second.kernels.predicted_us == launches.launches[1].us - launches.launches[1].gains_us["launch"]
    assert first.processors["pack"].measured_us is None
    assert first.processors["pack"].ratio is None


def test_a_report_without_times_of_processors(launches: LaunchEstimates, tmp_path: Path) -> None:
    measured = launches.beside(report(tmp_path, [generic(9000), generic(100_000)]))
    last = launches.launches[1].kernels_us
    assert measured.summary == (
        f"largest difference: in launch 1 the kernels take {100 - last:.1f} us longer than the predicted {last:.1f} us;"
        " the report has no times of processors"
    )


REFUSED: dict[str, tuple[Sequence[Mapping[str, object]], str]] = {
    "no rows": (OTHERS, "ops_perf_results_2026.csv has 0 rows of generic ops, which are not whole runs of 1 launch"),
    "no number": ([generic("9 us")], "line 2 of ops_perf_results_2026.csv: DEVICE KERNEL DURATION [ns] is '9 us'"),
    "nan": ([generic(5), generic("nan")], "line 3 of ops_perf_results_2026.csv: DEVICE KERNEL DURATION [ns] is 'nan'"),
    "zero": ([generic(0)], "line 2 of ops_perf_results_2026.csv: DEVICE KERNEL DURATION [ns] is '0'"),
    "below zero": ([generic(5, math=-1)], f"line 2 of ops_perf_results_2026.csv: {MATH} is '-1'"),
    "blank": ([generic(" ")], "line 2 of ops_perf_results_2026.csv: there is no DEVICE KERNEL DURATION [ns]"),
    "chip": (
        [generic(5, **{"DEVICE ARCH": "blackhole"})],
        "line 2 of ops_perf_results_2026.csv: DEVICE ARCH is 'blackhole', the prediction is for wormhole_n150",
    ),
    "cores": (
        [generic(5, **{"CORE COUNT": 16}), generic(5, **{"CORE COUNT": 8})],
        "line 3 of ops_perf_results_2026.csv: CORE COUNT is '8', matmul runs on 16",
    ),
    "program": (
        [generic(5, **{"COMPUTE KERNEL SOURCE": "a"}), generic(5), generic(5, **{"COMPUTE KERNEL SOURCE": "b"})],
        "line 4 of ops_perf_results_2026.csv: COMPUTE KERNEL SOURCE is not that of line 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(product: Estimate, tmp_path: Path, name: str) -> None:
    rows, message = REFUSED[name]
    with pytest.raises(UsageError) as error:
        product.beside(report(tmp_path, rows))
    assert (error.value.code, error.value.message) == ("TTX-U029", message)
    assert error.value.hint


def test_rows_that_are_no_whole_runs_are_refused(launches: LaunchEstimates, tmp_path: Path) -> None:
    for rows in ([generic(1)], [generic(1)] * 3, [generic(1), generic(1, **{"DEVICE ID": 1})]):
        with pytest.raises(UsageError, match="which are not whole runs of 2 launches"):
            launches.beside(report(tmp_path, rows))


def test_files_that_are_no_report(product: Estimate, tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(UsageError) as error:
            product.beside(path)
        assert error.value.code == "TTX-U029"
        return error.value.message

    assert refused(tmp_path / "none.csv") == f"{tmp_path}/none.csv cannot be read: No such file or directory"
    assert refused(tmp_path) == f"{tmp_path} cannot be read: Is a directory"
    path = report(tmp_path, [generic(5)], [name for name in HEAD if name not in (MATH, KERNELS)])
    assert refused(path) == f"ops_perf_results_2026.csv has no column {KERNELS}, {MATH}"
    path.write_bytes(b"OP CODE\n\xff\xfe")
    assert "cannot be read: 'utf-8' codec" in refused(path)
    path.write_bytes(b"")
    assert refused(path).startswith("ops_perf_results_2026.csv has no column OP CODE, DEVICE")


def test_a_program_without_compute_has_only_its_processors(tmp_path: Path) -> None:
    estimate = estimated(copy_block())
    (launch,) = estimate.beside(report(tmp_path, [generic(5000, reader=4000, math=1, writer=4500)])).launches
    assert launch.processors.keys() == estimate.cores[0].processors.keys()


def test_the_prediction_is_that_of_the_core_where_a_processor_ends_last(tmp_path: Path) -> None:
    estimate = estimated(split_k(32, 32, 128, 4), options={"cores": (4, 1), "partials": "noc"})
    (launch,) = estimate.beside(report(tmp_path, [generic(5000, **{"CORE COUNT": 4})])).launches
    # Each core waits for the partial sums of the one before.
    last = max(estimate.cores, key=lambda group: group.end_us).processors["writer"]
    assert len({group.processors["writer"].end_us for group in estimate.cores}) == 4
    assert last.busy_us < max(group.processors["writer"].busy_us for group in estimate.cores)
    assert launch.predicted["writer"] == last


def test_names_are_escaped(product: Estimate, tmp_path: Path) -> None:
    path = report(tmp_path, [generic(5000, reader=4000)]).rename(tmp_path / "<b>\u202e.csv")
    measured = product.beside(path)
    assert "<b>" not in measured._repr_html_()
    assert "&lt;b&gt;⟨U+202E⟩.csv" in measured._repr_html_()
    assert "\u202e" not in str(measured) + repr(measured)
    for row in measured.launches[0].table.rows:
        assert "".join(f"<td>{cell}</td>" for cell in row) in measured._repr_html_()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "estimate",
        "notebooks/kernels/gemm.py::matmul",
        *(f"{name}={size}" for name, size in SIZES.items()),
        "--beside",
    ]
    path = report(tmp_path, [generic(5000, reader=4000, writer=4900)])
    assert main([*words, str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("estimate: ")
    assert "\n\nmatmul beside ops_perf_results_2026.csv\n" in printed
    assert main([*words, str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (launch,) = data["measured"]["launches"]
    assert launch["processors"]["writer"]["measured_us"] == 4.9
    assert (
        launch["processors"]["writer"]["predicted_us"] == data["estimate"]["cores"][0]["processors"]["writer"]["end_us"]
    )
    assert main([*words, str(tmp_path / "none.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err
