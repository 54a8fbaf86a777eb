"""A recording has of each core what the emulator did there, and what is left out of it is said."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from tests.faults.kernels import product
from ttexplore import explore
from ttexplore.backends.base import Events
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.session.recordings import recording as recorded
from ttexplore.session.runs import emitted, kernel_listings
from ttexplore.views.explorer import packed
from ttexplore.views.runs.recording import Recording


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return explore(product(), options={"cores": (2, 1)})


@pytest.fixture(scope="module")
def recording(exploration: Exploration) -> Recording:
    return exploration.timeline().recording


@pytest.fixture(scope="module")
def wide() -> Exploration:
    return explore("notebooks/kernels/gemm.py::matmul", M=256, N=256, K=128, block_M=64, block_N=64)


def run_events(exploration: Exploration, limit: int, core: int = 0) -> Events:
    """The events of a run on an emulator that keeps so many."""
    program = emitted(exploration, kernel_listings(exploration, {}))
    events = Emulator(event_limit=limit, event_core=core).run(program, exploration.inputs()).events
    assert events is not None
    return events


def test_each_core_has_its_own_events(exploration: Exploration, recording: Recording) -> None:
    execution = exploration.run().execution
    assert execution is not None
    assert execution.events is not None
    events = execution.events
    assert recording.missing == ""
    assert len(recording) == len(recording.cores) == 2
    assert sum(len(one.records) for one in recording) == events.total == len(events.records)
    for index, one in enumerate(recording):
        assert one.core == recording.cores[index] == (index, 0)
        assert one.recording is recording
        # Each kernel does as many operations as the emulator counted for it, and ends.
        for kernel in range(3):
            own = one.records[one.records["kernel"] == kernel]
            assert len(own) == ((events.records["core"] == index) & (events.records["kernel"] == kernel)).sum()
            assert events.operations[own["operation"][-1]] == "finish"


def test_the_data_says_the_same_in_columns(recording: Recording) -> None:
    data = json.loads(json.dumps(recording.data))
    assert data["missing"] == ""
    assert [(x, y) for x, y, _ in data["cores"]] == list(recording.cores)
    for (_, _, number), pages, one in zip(data["cores"], data["pages"], recording, strict=True):
        pattern = data["patterns"][number]
        columns = ("time", "kernel", "operation", "buffer", "amount", "line", "tensor")
        assert {len(pattern[column]) for column in columns} == {len(one.records)}
        assert np.cumsum(pattern["time"]).tolist() == one.records["time"].tolist()
        assert pattern["kernel"] == one.records["kernel"].tolist()
        for kernel, line, place in zip(pattern["kernel"], one.records["line"].tolist(), pattern["line"], strict=True):
            number, text, own = data["lines"][place]
            assert number == line
            assert (text, own) == one.lines[one.kernels[kernel], line]
        rest = iter(pages)
        for operation, tensor, record in zip(pattern["operation"], pattern["tensor"], one.records, strict=True):
            transfer = data["operations"][operation] in ("read", "write")
            assert (tensor >= 0) == transfer
            if transfer:
                assert next(rest) == record["amount"]
                assert tensor == int(record["object"]) >> 8
        assert next(rest, None) is None
        for position, (name, number, capacity) in enumerate(data["buffers"]):
            assert (one.buffers[number], one.capacities[number]) == (name, capacity)
            levels = np.cumsum(
                [
                    {"push_back": 1, "pop_front": -1}.get(data["operations"][operation], 0) * amount
                    if buffer == position
                    else 0
                    for operation, buffer, amount in zip(
                        pattern["operation"], pattern["buffer"], pattern["amount"], strict=True
                    )
                ]
            )
            assert levels.tolist() == one.occupancy(name).tolist()
        assert [wait[1:3] for wait in pattern["waits"]] == [[wait.start, wait.end] for wait in one.waits]


def test_cores_that_do_the_same_are_sent_once(wide: Exploration) -> None:
    recording = wide.timeline().recording
    assert len(recording) == 16
    assert recording.alike == (recording.cores,)
    data = recording.data
    assert len(data["patterns"]) == 1
    # They differ in the pages that they read and write.
    assert len({tuple(pages) for pages in data["pages"]}) == 16
    table = str(recording).splitlines()
    assert table[0] == f"16 cores recorded, {recording.events.total:,} events in all"
    assert table[1].split("  ")[0] == "cores"
    assert table[2].startswith("(0, 0), (1, 0) and 14 alike ")
    assert table[2].endswith(" done")
    shares = [f"{recording[3, 1].waiting_share(kernel):.0%}" for kernel in ("reader", "compute", "writer")]
    assert table[2].split()[-4:-1] == shares
    assert table[-1].startswith("Steps are logical")


def test_above_the_limit_cores_are_left_out_evenly(wide: Exploration) -> None:
    whole = run_events(wide, 1_000_000)
    assert (whole.stride, whole.cut) == (1, 0)
    of_one = whole.total // 16
    kept = run_events(wide, 5 * of_one, core=6)
    assert kept.total == whole.total
    assert (kept.stride, kept.cut) == (4, 0)
    assert set(kept.records["core"].tolist()) == {2, 6, 10, 14} == {i for i in range(16) if kept.has(i)}
    chosen = np.isin(whole.records["core"], [2, 6, 10, 14])
    np.testing.assert_array_equal(kept.records, whole.records[chosen])
    recording = recorded(wide, kept, (6, 0), kernel_listings(wide, {}))
    assert recording.cores == ((2, 0), (6, 0), (2, 1), (6, 1))
    assert recording.missing.startswith(f"4 of 16 cores are recorded: the run has {whole.total:,} events, and ")
    assert recording.missing in str(recording)
    with pytest.raises(UsageError, match=r"core \(0, 0\) is not recorded") as caught:
        recording[0, 0]
    assert "ex.timeline((0, 0))" in caught.value.hint


def test_of_one_core_too_many_events_are_cut(wide: Exploration) -> None:
    kept = run_events(wide, 40, core=9)
    assert len(kept.records) == 40
    assert set(kept.records["core"].tolist()) == {9}
    whole = run_events(wide, 1_000_000)
    assert kept.cut == whole.total // 16 - 40
    one = recorded(wide, kept, (1, 1), kernel_listings(wide, {}))[1, 1]
    assert one.cut == kept.cut
    assert "are left out" in str(one)
    assert " cut\n" in str(one.recording)


def test_a_page_gets_as_many_cores_as_it_takes(wide: Exploration) -> None:
    recording = wide.timeline((1, 1)).recording
    size = len(packed(recording.data))
    few = recording.within(size - 200)
    assert len(packed(few.data)) <= size - 200
    assert (1, 1) in few.cores
    assert 1 < len(few) < 16
    assert few.missing.startswith(f"{len(few)} of 16 cores are recorded: that of more takes ")
    assert recording.within(1).cores == ((1, 1),)
    assert recording.within() is recording


def test_each_blocked_core_is_stuck_where_it_waits(wide: Exploration) -> None:
    lines = wide.code["compute"].text.splitlines()
    del lines[next(i for i, line in enumerate(lines) if ".pop_front(" in line)]
    stuck = wide.timeline(code={"compute": "\n".join(lines)})
    recording = stuck.recording
    assert recording.deadlock.splitlines()[-1].strip() == "16 of 16 cores are blocked"
    assert set(recording.stuck) == set(range(16))
    for one in recording:
        ends = {wait.kernel: wait for wait in one.waits if wait.stuck}
        finished = {one.kernels[record["kernel"]] for record in one.records if record["operation"] == 19}
        assert recording.events.operations[19] == "finish"
        assert ends.keys() | finished == set(one.kernels)
        assert not ends.keys() & finished
        assert {wait.end for wait in ends.values()} == {one.end + 2}
    assert str(recording).splitlines()[2].endswith("deadlock")
    assert str(recording).endswith(recording.deadlock)


def test_a_deadlock_on_a_core_that_was_left_out_is_recorded(
    wide: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    head = "void kernel_main() {"
    text = wide.code["reader"].text.replace(head, head + " if (get_arg_val<uint32_t>(0) == 5) return;")
    assert wide.plan.partition is not None
    assert [core.values["work_start"] for core in wide.plan.partition.cores] == list(range(16))
    of_one = len(run_events(wide, 1_000_000).records) // 16
    few = functools.partial(Emulator, event_limit=4 * of_one)
    monkeypatch.setattr("ttexplore.backends.emulator.Emulator", few)
    recorded = wide.timeline(code={"reader": text})
    assert recorded.core == (5, 0)
    assert recorded.deadlock.splitlines()[-1].strip() == "1 of 16 cores are blocked"
    assert {wait.kernel for wait in recorded.waits if wait.stuck} == {"compute", "writer"}
    assert recorded.recording.cores == ((1, 0), (5, 0), (1, 1), (5, 1))
    states = {core: row.split()[-1] for core, row in zip(
        (cores[0] for cores in recorded.recording.alike), str(recorded.recording).splitlines()[3:], strict=False
    )}  # fmt: skip
    assert states == {(1, 0): "done", (5, 0): "deadlock"}
