"""What the clock reads from programs, against what the emulator records when it runs them."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import Counter as Count
from math import prod
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import gemm
from tests.corpus.deciding_variables import gathered_rows, searched, summed_before
from tests.corpus.gemms import GEMMS
from tests.corpus.index_tensors import chained, in_two_loops, masked_blocks, ragged, table
from tests.corpus.index_tensors import counted as counted_blocks
from tests.corpus.launches import two_products
from tests.corpus.rearranged import computed_places
from tests.corpus.spine import SPINE
from tests.corpus.sums import split_k, sums_of_found_rows
from tests.corpus.turns import TURNS
from ttexplore.clock.estimate import Estimate, LaunchEstimates
from ttexplore.clock.events import CoreClass, Counter, Event, Give, Repeat, Signal, Together, counted
from ttexplore.clock.events import MulticastSend as EventMulticast
from ttexplore.clock.program import Processors, core_classes
from ttexplore.clock.program import classes_of as grouped
from ttexplore.clock.rates import RESOURCES, Rates, Resource, rates_of
from ttexplore.clock.replay import Replay, cycles_within, replay
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.exploration.lowered import Lowered
from ttexplore.plan import CoreRange, Multicast, SharedInput
from ttexplore.views.figures.timeline import Timeline

SHARING, ALONE = {"multicast": "all"}, {"multicast": "off"}
OVER_NOC: dict[str, Any] = {"partials": "noc", "multicast": "off"}


def classes_of(exploration: Exploration, inputs: Any = None) -> list[CoreClass]:
    final = exploration.steps[-1].after
    arrays = exploration._inputs(inputs, 0)
    run = None if inputs is None else lambda: exploration._lowered.run(final, arrays, numbers=True).numbers
    return core_classes(final.functions, final.plan, exploration.target, run)


def estimated(exploration: Exploration, inputs: Any = None) -> Estimate:
    found = exploration.estimate(inputs)
    assert isinstance(found, Estimate)
    return found


def pushed(one: CoreClass) -> Count[str]:
    """The pages that each circular buffer gets on a core, from the events."""
    found: Count[str] = Count()
    for events in one.processors.values():
        for event, times in counted(events):
            if isinstance(event, Give) and event.counter.name.startswith("pages of ") and event.amount > 0:
                found[event.counter.name.removeprefix("pages of ")] += times * event.amount
    return found


def emulated(run: Timeline, core: tuple[int, int]) -> Count[str]:
    """The pages that each circular buffer got on a core, from what the emulator recorded."""
    timeline = run.recording[core]
    found: Count[str] = Count()
    pushes = timeline.records["operation"] == run.recording.events.operations.index("push_back")
    for record in timeline.records[pushes]:
        found[timeline.buffers[int(record["object"])].partition(" and ")[0]] += int(record["amount"])
    return found


CASES = [one for one in (*SPINE, *TURNS) if one.on_chip][:12]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_buffers_get_the_pages_that_the_emulator_pushes(case: Any) -> None:
    exploration = ttx.explore(case.make(), options=case.options)
    for launch in exploration.launches:
        found = {core: one for one in classes_of(launch) for core in one.cores}
        run = launch.timeline()
        assert emulated(run, run.core) == pushed(found[run.core])


# What a core does in these depends on elements of tensors.
DECIDED = {
    "counted": counted_blocks(), "table": table(), "ragged": ragged(), "chained": chained(), "masked": masked_blocks(),
    "in_two_loops": in_two_loops(), "found_rows": sums_of_found_rows(32, rows=16), "searched": searched(),
    "gathered": gathered_rows(columns=32), "summed_before": summed_before(),
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_with_inputs_buffers_get_the_pages_that_the_emulator_pushes(name: str) -> None:
    exploration = ttx.explore(DECIDED[name])
    inputs = list(exploration.inputs())
    run = exploration.timeline(inputs=inputs)
    found = classes_of(exploration, inputs)
    assert any(one.of_inputs for one in found)
    for one in found:
        for core in one.cores:
            assert emulated(run, core) == pushed(one)


def test_a_gemm_reads_each_block_once_per_core() -> None:
    """1024^3 on 64 cores, each with a block of 128 x 128: all of A and of B go to 8 cores each."""
    found = estimated(ttx.explore(gemm(1024, 1024, 1024, 128, 128, 64), options=ALONE))
    matrix = 1024 * 1024 * 2
    assert (found.read_bytes, found.written_bytes, found.tensor_bytes) == (16 * matrix, matrix, 3 * matrix)
    assert found.bound == "DRAM"
    assert len(found.cores) == 1
    assert len(found.cores[0].cores) == 64
    # 32^3 products of tiles, 64 cycles each at HiFi4, on 64 cores.
    assert found.compute_peak_us == pytest.approx(32**3 * 64 / 64 / 1000)
    assert found.us > found.roofline_us
    assert found.us - found.gains_us["DRAM"] >= found.compute_peak_us


def test_uneven_work_is_imbalance() -> None:
    """Three work items on two cores: one core ends after two thirds of the time."""
    kernel = gemm(3 * 64, 64, 2048, 64, 64, 64)
    found = estimated(ttx.explore(kernel, options={"core_ranges": [((0, 0), (1, 0))]}))
    assert [len(one.cores) for one in found.cores] == [1, 1]
    running = found.us - found.gains_us["launch"]
    assert found.gains_us["imbalance"] == pytest.approx(running / 4, rel=0.05)
    even = estimated(ttx.explore(kernel, options={"core_ranges": [((0, 0), (2, 0))]}))
    assert even.gains_us["imbalance"] == pytest.approx(0, abs=1e-9)


def test_turns_with_branches_are_looked_at_one_by_one() -> None:
    """A causal loop: work item n makes n + 1 turns."""

    @T.prim_func
    def kernel(A: T.Tensor((256, 32), "bfloat16"), C: T.Tensor((256, 32), "bfloat16")):
        with T.Kernel(8) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in range(bx + 1):
                T.copy(A[k * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j]
            T.copy(c, C[bx * 32, 0])

    exploration = ttx.explore(kernel, options={"core_ranges": [((0, 0), (0, 0))]})
    found = estimated(exploration)
    assert found.read_bytes == sum(range(1, 9)) * 2048
    assert found.written_bytes == 8 * 2048
    spread = estimated(ttx.explore(kernel))
    assert len(spread.cores) == 8
    assert spread.us < found.us


def test_large_kernels_are_replayed_in_few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what would help most if all cores do the same; where they share inputs, they do not."""
    events = 0
    next_event = heapq.heappop

    def counted_event(heap: list[Any]) -> Any:
        nonlocal events
        events += 1
        return next_event(heap)

    kernel = gemm(4096, 4096, 4096, 128, 128, 64)
    exploration, shared = (ttx.explore(kernel, target="blackhole_p150", options=one) for one in (ALONE, None))
    monkeypatch.setattr(heapq, "heappop", counted_event)
    found = estimated(exploration)
    assert found.bound in found.gains_us
    assert 0 < events < 100_000
    events = 0
    assert estimated(shared).us < found.us
    assert 0 < events < 300_000
    assert prod((128, 128, 128)) * 64 / 110 / 1350 == pytest.approx(found.compute_peak_us, rel=1e-6)


def test_the_time_takes_one_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be saved takes one more for each resource, once it is asked for; the bound, only those of resources
    that could be it."""
    replays: list[object] = []
    ended: list[object] = []

    def counted_replay(classes: list[CoreClass], rates: Rates) -> Replay:
        replays.append(rates)
        return replay(classes, rates)

    def counted_within(classes: list[CoreClass], rates: Rates, limit: float) -> int | None:
        ended.append(rates)
        return cycles_within(classes, rates, limit)

    monkeypatch.setattr("ttexplore.clock.estimate.replay", counted_replay)
    monkeypatch.setattr("ttexplore.clock.estimate.cycles_within", counted_within)
    found = estimated(ttx.explore(gemm(1024, 1024, 1024, 128, 128, 64), options=ALONE))
    assert found.us > found.roofline_us > 0
    assert len(replays) == 1
    assert found.bound in (*RESOURCES, "imbalance", "launch")
    assert 1 <= len(ended) < len(RESOURCES)
    assert len(replays) == 1
    assert found.gains_us[found.bound] == max(found.gains_us.values())
    # What was replayed to its end is not replayed again.
    assert len(RESOURCES) - len(ended) <= len(replays) - 1 < len(RESOURCES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.us = 0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("case", [*CASES, *GEMMS[:8]], ids=lambda one: one.name)
def test_the_bound_is_the_first_that_saves_most(case: Any) -> None:
    """Of a resource that is not replayed, it is known that it saves less."""
    exploration = ttx.explore(case.make(), options=case.options)
    found, again = exploration.estimate(), exploration.fork().estimate()
    assert found.bound == max(again.gains_us, key=lambda one: again.gains_us[one])


def test_launches_are_added_up() -> None:
    exploration = ttx.explore(two_products())
    found = exploration.estimate()
    assert isinstance(found, LaunchEstimates)
    assert found.us == pytest.approx(sum(launch.estimate().us for launch in exploration.launches))
    assert found.cycles == sum(one.cycles for one in found.launches)
    assert found.bound in found.launches[0].gains_us
    assert str(found).startswith(f"estimate: {found.us:.1f} us for {exploration.kernel.name}, all launches together")
    assert "2 launches" in repr(found)
    one, other = found.launches
    assert found.gains_us == {name: saved + other.gains_us[name] for name, saved in one.gains_us.items()}
    assert found.roofline_us == one.roofline_us + other.roofline_us
    assert found.dram_peak_us == one.dram_peak_us + other.dram_peak_us
    assert found.compute_share == pytest.approx((one.compute_peak_us + other.compute_peak_us) / found.us)
    assert found.read_bytes == one.read_bytes + other.read_bytes > 0
    assert found.written_bytes == one.written_bytes + other.written_bytes > 0
    assert found.tensor_bytes == one.tensor_bytes + other.tensor_bytes
    assert found.traffic_us == one.traffic_us + other.traffic_us
    data = found.to_json()
    assert [launch["us"] for launch in data["launches"]] == [one.us, other.us]
    assert {*one.to_json()} - {"target", "cores", "links"} == {*data} - {"launches"}
    assert all(data[name] == getattr(found, name) for name in {*data} - {"launches"})


def test_what_depends_on_elements_is_refused() -> None:
    exploration = ttx.explore(searched())
    with pytest.raises(UsageError, match=r"in the \w+ depends on elements of tensors, so that no time") as caught:
        exploration.estimate()
    assert caught.value.code == "TTX-U022"
    assert caught.value.span is not None
    assert exploration.estimated.startswith("not known: ")
    with pytest.raises(UsageError, match="the number of inputs is 1, but the kernel takes 6"):
        exploration.estimate([np.zeros((96, 64))])
    with pytest.raises(UsageError, match="there is no kind of inputs 'nothing'"):
        exploration.estimate("nothing")


# The most blocks that a kernel below adds up.
MOST = 32


def summed(count: int) -> Any:
    """The sum of so many blocks."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64 * MOST), "float32"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            for k in range(count):
                T.copy(A[0, k * 64], a)
                for i, j in T.Parallel(32, 64):
                    c[i, j] += a[i, j]
            T.copy(c, C[0, 0])

    return kernel


@T.prim_func
def summed_as_told(
    A: T.Tensor((32, 64 * MOST), "float32"), N: T.Tensor((1,), "int32"), C: T.Tensor((32, 64), "float32")
):
    """The same of as many blocks as a tensor says."""
    with T.Kernel(1):
        a = T.alloc_shared((32, 64), "float32")
        c = T.alloc_fragment((32, 64), "float32")
        T.clear(c)
        for k in range(N[0]):
            T.copy(A[0, k * 64], a)
            for i, j in T.Parallel(32, 64):
                c[i, j] += a[i, j]
        T.copy(c, C[0, 0])


def test_a_length_in_a_tensor_takes_the_time_of_the_constant() -> None:
    """And that to read the number and to hand it on to the compute kernel, whatever it is."""
    exploration, ones = ttx.explore(summed_as_told), np.ones((32, 64 * MOST), np.float32)
    found = {count: estimated(exploration, [ones, np.array([count])]) for count in (2, 3, 8, MOST)}
    constant = {count: estimated(ttx.explore(summed(count))) for count in found}
    more = {one.cycles - constant[count].cycles for count, one in found.items()}
    assert len(more) == 1
    # A read from DRAM, and some instructions.
    latency = rates_of(exploration.target).latency["read", "dram"]
    assert latency < more.pop() < 2 * latency
    assert {one.read_bytes - constant[count].read_bytes for count, one in found.items()} == {32}
    assert all(one.of_inputs for one in found.values())
    assert not any(one.of_inputs for one in constant.values())
    times = [one.us for one in found.values()]
    assert times == sorted({*times})
    # No turn at all: neither block is read.
    none = estimated(exploration, {"A": ones, "N": np.array([0])})
    assert (none.read_bytes, none.written_bytes) == (32, 32 * 64 * 4)


def test_an_estimate_of_inputs_says_so() -> None:
    exploration = ttx.explore(summed_as_told)
    found = estimated(exploration, "ones")
    assert "\n  inputs: holds for these inputs only: their elements decide what the program does\n" in str(found)
    assert found.summary.startswith(f"{found.us:.1f} us (estimate for these inputs), bound by ")
    assert "kernel on wormhole_n150 for these inputs" in found._repr_html_().replace("summed_as_told", "kernel")
    assert found.to_json()["of_inputs"] is True
    # Without inputs nothing is remembered of it.
    with pytest.raises(UsageError, match="the length of a loop in the reader depends"):
        exploration.estimate()


def test_inputs_that_decide_nothing_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the program run with them."""
    exploration = ttx.explore(gemm(128, 128, 128, 64, 64, 64))
    monkeypatch.setattr(Lowered, "run", None)
    found = estimated(exploration, "ones")
    assert found == estimated(exploration)
    assert not found.of_inputs
    assert "for these inputs" not in found.summary


@T.prim_func
def chosen_rows(A: T.Tensor((128, 32), "bfloat16"), Rows: T.Tensor((4,), "int32"), C: T.Tensor((128, 32), "bfloat16")):
    """Blocks of rows that an index chooses: zeros where it is outside."""
    with T.Kernel(4) as by:
        a = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[Rows[by] * 32, 0], a)
        T.copy(a, C[by * 32, 0])


def test_a_guard_of_computed_places() -> None:
    exploration, values = ttx.explore(chosen_rows), np.ones((128, 32))
    found = {
        inside: estimated(exploration, [values, np.array([3 if by < inside else 4 for by in range(4)])])
        for inside in range(5)
    }
    assert {inside: one.read_bytes for inside, one in found.items()} == {n: 4 * 32 + n * 2048 for n in range(5)}
    assert found[0].us < found[4].us
    # Those that read a block do the same, and those that do not.
    assert [len(one.cores) for one in found.values()] == [1, 2, 2, 2, 1]


@T.prim_func
def counted_by_a_launch(
    A: T.Tensor((32, 64 * MOST), "float32"), N: T.Tensor((32, 32), "int32"), M: T.Tensor((32, 32), "int32"),
    C: T.Tensor((32, 64), "float32"),
):  # fmt: skip
    """As many blocks as the first launch computes."""
    with T.Kernel(1):
        n = T.alloc_shared((32, 32), "int32")
        T.copy(N[0, 0], n)
        for i, j in T.Parallel(32, 32):
            n[i, j] = n[i, j] + 1
        T.copy(n, M[0, 0])
    with T.Kernel(1):
        a = T.alloc_shared((32, 64), "float32")
        c = T.alloc_fragment((32, 64), "float32")
        T.clear(c)
        for k in range(M[0, 0]):
            T.copy(A[0, k * 64], a)
            for i, j in T.Parallel(32, 64):
                c[i, j] += a[i, j]
        T.copy(c, C[0, 0])


def test_launches_get_what_those_before_them_leave() -> None:
    exploration = ttx.explore(counted_by_a_launch)
    ones = np.ones((32, 64 * MOST), np.float32)
    found = {n: exploration.estimate([ones, np.full((32, 32), n)]) for n in (1, 7)}
    for n, one in found.items():
        assert isinstance(one, LaunchEstimates)
        assert [launch.of_inputs for launch in one.launches] == [False, True]
        assert one.of_inputs
        assert one.to_json()["of_inputs"] is True
        assert one.launches[1].read_bytes == 32 + (n + 1) * 32 * 64 * 4
        assert one.summary.endswith(f"(estimate for these inputs) for 2 launches, the longest bound by {one.bound}")
    assert found[1].us < found[7].us


def test_each_launch_is_interpreted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what it leaves and for what its elements decide."""
    runs: list[str] = []
    exploration, run = ttx.explore(counted_by_a_launch), Lowered.run

    def counted(self: Lowered, *given: Any, **named: Any) -> Any:
        runs.append(self.kernel.name)
        return run(self, *given, **named)

    monkeypatch.setattr(Lowered, "run", counted)
    exploration.estimate([np.ones((32, 64 * MOST), np.float32), np.full((32, 32), 3)])
    assert runs == [launch.kernel.name for launch in exploration.launches]


def test_the_text_says_that_it_is_an_estimate() -> None:
    found = estimated(ttx.explore(gemm(256, 256, 256, 64, 64, 64)))
    text = str(found)
    assert text.startswith(f"estimate: {found.us:.1f} us for ")
    assert "error: 4% in the median, at most 28%, against published times" in text
    assert f"bound by {found.bound}" in text
    assert all(f"\n  {name} " in text for name in (*found.gains_us, "reader", "writer", "unpack", "math", "pack"))
    assert repr(found) == f"<{found.summary}>"
    assert "(estimate)" in found.summary


def test_an_estimate_says_how_sure_it_is() -> None:
    found = estimated(ttx.explore(gemm(256, 256, 256, 64, 64, 64)))
    assert found.flops == 2 * 256**3
    assert found.tflops == pytest.approx(2 * 256**3 / found.us / 1e6)
    assert found.gigabytes_per_s == pytest.approx((found.read_bytes + found.written_bytes) / found.us / 1e3)
    assert found.confidence == pytest.approx(1 - found.gains_us["RISC-V"] / found.us)
    assert 0.5 < found.confidence < 1
    ordered = sorted(found.gains_us.values(), reverse=True)
    name, part = found.runner_up
    assert name != found.bound
    assert found.gains_us[name] == ordered[1]
    assert part == pytest.approx(ordered[1] / ordered[0])
    assert f"{found.confidence:.0%} of the time comes from what is held to measurements" in str(found)
    assert f"if it were free; {name} would save {part:.0%} of that" in str(found)


def test_an_estimate_names_what_is_not_modelled() -> None:
    """Blocks of A come from shards of other cores; with match_shard, from the core's own."""
    kernel = gemm(256, 256, 256, 64, 64, 64)
    layouts = {"A": {"memory": "l1", "shard": "height"}}
    matched = {"policy": "match_shard", "match": "A"}
    from_others, own = (ttx.explore(kernel, options={"layouts": layouts, **options}) for options in ({}, matched))
    assert estimated(from_others).from_cores == ("A",)
    assert "how reads of A from other cores hold one another up is not modelled" in str(estimated(from_others))
    assert estimated(own).from_cores == ()
    assert "not modelled" not in str(estimated(own))


@pytest.mark.parametrize("resource", RESOURCES)
def test_faster_resources_save_more(resource: Resource) -> None:
    """Up to what a free one saves; one that is as fast saves nothing."""
    found = estimated(ttx.explore(gemm(256, 256, 256, 64, 64, 64)))
    steps = [found.gain_us(resource, times) for times in (1, 1.1, 2, 1e9)]
    assert steps[0] == 0
    # Cycles are whole numbers.
    slack = 0.01 * found.us
    assert all(less <= more + slack for less, more in itertools.pairwise(steps))
    assert steps[-1] == pytest.approx(found.gains_us[resource], abs=slack)


def copied(rows: int) -> Any:
    """A kernel that copies the first rows of a tensor of 256."""

    @T.prim_func
    def kernel(A: T.Tensor((256, 256), "bfloat16"), B: T.Tensor((rows, 256), "bfloat16")):
        with T.Kernel(rows // 32) as bx:
            a = T.alloc_shared((32, 256), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    return kernel


def test_a_copy_in_l1_has_no_roofline() -> None:
    """Nothing is computed, and nothing comes from DRAM: there is no peak to compare with."""
    in_l1 = {name: {"shard": "height", "memory": "l1"} for name in ("A", "B")}
    found = estimated(ttx.explore(copied(256), options={"layouts": in_l1}))
    assert (found.roofline_us, found.compute_share, found.read_bytes) == (0, 0, 0)
    assert "roofline: 0.0 us (compute 0.0 us, DRAM 0.0 us)\n" in str(found)
    assert "times as long" in str(estimated(ttx.explore(copied(256))))


def test_the_roofline_of_a_kernel_that_reads_a_part() -> None:
    """Of a tensor of 256 rows, 32 are read: DRAM need not transfer the others."""
    part, whole = (estimated(ttx.explore(copied(rows))) for rows in (32, 256))
    assert (part.read_bytes, part.written_bytes, part.tensor_bytes) == (32 * 512, 32 * 512, (256 + 32) * 512)
    assert (whole.read_bytes, whole.tensor_bytes) == (256 * 512, 2 * 256 * 512)
    assert part.dram_peak_us == pytest.approx(whole.dram_peak_us / 8)
    # Read more than once, a tensor still counts once.
    product = estimated(ttx.explore(gemm(256, 256, 256, 64, 64, 64)))
    assert product.read_bytes > product.tensor_bytes
    assert product.dram_peak_us == pytest.approx(whole.dram_peak_us * 3 / 2)


def test_elements_that_processors_copy_bound_a_kernel() -> None:
    """The writer copies elements one by one nearly all the time."""
    found = estimated(ttx.explore(computed_places()))
    writer = found.cores[0].processors["writer"]
    assert writer.busy_us > 0.9 * found.us
    assert found.bound == "RISC-V"
    assert found.gains_us["RISC-V"] == pytest.approx(writer.busy_us, rel=0.1)
    assert "bound by RISC-V" in str(found)


def test_a_faster_chip_takes_less_time() -> None:
    kernel = gemm(1024, 1024, 1024, 128, 128, 64)
    wormhole, blackhole = (
        estimated(ttx.explore(kernel, target=target)) for target in ("wormhole_n150", "blackhole_p150")
    )
    assert blackhole.us < wormhole.us
    fast = estimated(ttx.explore(gemm(2048, 2048, 2048, 256, 256, 64), options={"math_fidelity": "LoFi"}))
    exact = estimated(ttx.explore(gemm(2048, 2048, 2048, 256, 256, 64), options={"math_fidelity": "HiFi4"}))
    assert exact.compute_peak_us == pytest.approx(4 * fast.compute_peak_us)


def test_a_gemm_that_shares_its_inputs_reads_them_once() -> None:
    """Cores in a row share blocks of A, those in a column blocks of B: 64 cores are four kinds of cores."""
    kernel = gemm(1024, 1024, 1024, 128, 128, 64)
    found, alone = (estimated(ttx.explore(kernel, options=one)) for one in (SHARING, ALONE))
    matrix = 1024 * 1024 * 2
    assert found.read_bytes == 2 * matrix
    assert sorted(len(one.cores) for one in found.cores) == [1, 7, 7, 49]
    assert found.us < 0.65 * alone.us
    # Each waits for others, but for the core that sends both.
    waiting = {len(one.cores): one.processors["reader"].waits_us.get("semaphore", 0) for one in found.cores}
    assert waiting[49] > 0
    assert waiting[49] > waiting[1]


@pytest.mark.parametrize("sizes", [(640, 640, 256), (320, 512, 64), (1088, 96, 128), (2048, 64, 64)])
@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_uneven_grids_of_cores_that_share_end(sizes: tuple[int, int, int], target: str) -> None:
    """Every core of a class has a sender of one class, and every sender hears of all its receivers; with and without
    periods, the same."""
    m, n, k = sizes
    exploration = ttx.explore(gemm(m, n, k, 64, 32, 32), target=target, options=SHARING)
    classes = classes_of(exploration)
    rates = rates_of(exploration.target)
    fast, slow = replay(classes, rates), replay(classes, rates, by_periods=False)
    assert fast.stuck == slow.stuck == ()
    assert fast.cycles == pytest.approx(slow.cycles, rel=1e-3)
    assert exploration.plan.partition is not None
    assert sum(len(one.cores) for one in classes) == len(exploration.plan.partition.cores)


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_cores_wait_for_partial_sums_of_others(target: str) -> None:
    """Four chains of eight cores: of each place in a chain one class; the later a core, the longer it waits."""
    found = estimated(ttx.explore(split_k(64, 64, 2048, 8), target=target, options=OVER_NOC))
    assert [len(one.cores) for one in found.cores] == [4] * 8
    waits = [one.processors["writer"].waits_us.get("semaphore", 0.0) for one in found.cores]
    assert waits[0] < 0.1
    assert all(before < after for before, after in itertools.pairwise(waits[:-1]))
    ends = [one.processors["writer"].end_us for one in found.cores]
    assert ends == sorted(ends)
    assert found.us == pytest.approx(max(ends) + found.gains_us["launch"], rel=0.01)
    # The first core of a chain reads the block, the last one writes it.
    block = 32 * 32 * 4
    inputs = 2 * 32 * 256 * 2
    assert [one.read_bytes for one in found.cores] == [inputs + block, *[inputs] * 7]
    assert [one.written_bytes for one in found.cores] == [*[0] * 7, block]


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_each_core_of_a_chain_takes_time(target: str) -> None:
    """Each is there for a hop: transfer, signal, one sum. Of several blocks, hops of one are hidden by those of
    others."""
    one, two = (
        [estimated(ttx.explore(kernel, target=target, options={**OVER_NOC, "cores": cores})).us for kernel in kernels]
        for kernels, cores in (
            ([split_k(32, 32, 128 * parts, parts) for parts in (2, 4, 8, 16)], (8, 2)),
            ([split_k(32, 128, 128 * parts, parts) for parts in (2, 4, 8, 16)], (4, 4)),
        )
    )
    hops = [(later - before) / count for before, later, count in zip(one, one[1:], (2, 4, 8), strict=False)]
    assert 0.2 < min(hops) <= max(hops) < 3
    assert max(hops) < 1.2 * min(hops)
    assert two == sorted(two)


def test_partial_sums_over_the_noc_are_faster_than_in_dram() -> None:
    """Eight parts of a deep product on 32 cores, or on the four that own its blocks."""
    kernel = split_k(64, 64, 2048, 8)
    noc, dram = (estimated(ttx.explore(kernel, options={"partials": one})) for one in ("noc", "dram"))
    assert noc.us < 0.6 * dram.us
    assert sum(len(one.cores) for one in dram.cores) == 4


def test_chains_in_periods_are_those_of_a_replay_of_every_event() -> None:
    exploration = ttx.explore(split_k(256, 256, 256, 2), options={**OVER_NOC, "cores": (2, 1)})
    classes, rates = classes_of(exploration), rates_of(exploration.target)
    fast, slow = replay(classes, rates), replay(classes, rates, by_periods=False)
    assert fast.stuck == slow.stuck == ()
    assert fast.cycles == pytest.approx(slow.cycles, rel=2e-3)


def test_classes_tell_cores_apart_by_their_senders() -> None:
    """Six cores with equal events, two senders: one sends to three, the other to one. What differs is who waits for
    whom, so each of the four kinds is a class, and three receivers of one class signal as three."""
    shared = SharedInput(
        "A", "a", "row", 0, 1,
        (Multicast((0, 0), CoreRange((0, 0), (3, 0))), Multicast((0, 1), CoreRange((0, 1), (1, 1)))), 0, 0,
    )  # fmt: skip
    ready = Counter("ready", "semaphore")
    events: dict[str, Processors] = {
        "sends": {"reader": (EventMulticast(2048, 1, 3, ready, ("A_receivers",)),)},
        "receives": {"reader": (Signal(ready, 1, "A_sender"),)},
    }
    names = {
        (0, 0): "sends", (1, 0): "receives", (2, 0): "receives", (3, 0): "receives", (0, 1): "sends",
        (1, 1): "receives",
    }  # fmt: skip
    made = {one.cores: one for one in grouped(names, events, (shared,), {})}
    assert [*made] == [((0, 0),), ((1, 0), (2, 0), (3, 0)), ((0, 1),), ((1, 1),)]
    signal = made[(1, 0), (2, 0), (3, 0)].processors["reader"]
    assert signal == (Signal(ready, 3, made[((0, 0),)].name),)
    assert made[((0, 1),)].processors["reader"] == (EventMulticast(2048, 1, 3, ready, (made[((1, 1),)].name,)),)


def apart(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The same events, each processor's turns as a loop of its own."""
    made: list[Event] = []
    for event in events:
        match event:
            case Together(turns, parts, own):
                made.append(Repeat(turns, apart(dict(parts)[own])))
            case Repeat(turns, body):
                made.append(Repeat(turns, apart(body)))
            case _:
                made.append(event)
    return tuple(made)


@pytest.mark.parametrize("accumulate", ["l1", "reload"])
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi4"])
@pytest.mark.parametrize("sharing", ["auto", "off"])
def test_turns_that_processors_run_together_take_as_long_as_apart(accumulate: str, fidelity: str, sharing: str) -> None:
    options = {"accumulate": accumulate, "math_fidelity": fidelity, "multicast": sharing}
    exploration = ttx.explore(gemm(512, 512, 1024, 128, 128, 64), options=options)
    classes, rates = classes_of(exploration), rates_of(exploration.target)
    split = [
        CoreClass(one.name, one.cores, {name: apart(events) for name, events in one.processors.items()}, one.start)
        for one in classes
    ]
    assert split != classes
    found, slow = replay(classes, rates), replay(split, rates)
    assert found.cycles == pytest.approx(slow.cycles, rel=0.01)
    assert found.events < slow.events
    for times, others in zip(found.processors, slow.processors, strict=True):
        for name, time_ in times.items():
            assert time_.busy == pytest.approx(others[name].busy, rel=0.01)
            assert time_.end == pytest.approx(others[name].end, rel=0.01)
