"""The replay on small programs, whose times are computed by hand."""

from __future__ import annotations

import random

import pytest

from tests.clock.published import N150
from tests.clock.sdk import matmul, transfers
from ttexplore.clock.engines import SOURCES_FREE, SOURCES_FULL, filled, free, pop, push, reserve, starting, wait
from ttexplore.clock.events import (
    Complete,
    CoreClass,
    Counter,
    Event,
    Give,
    MulticastSend,
    ProcessorName,
    Repeat,
    Signal,
    Transfer,
    Wait,
    Work,
    joined,
    moved_bytes,
    useful_cycles,
)
from ttexplore.clock.rates import RESOURCES, rates_of
from ttexplore.clock.replay import cycles_within, replay

RATES = rates_of(N150)


def core(start: dict[Counter, int] | None = None, **processors: tuple[Event, ...]) -> CoreClass:
    named: dict[ProcessorName, tuple[Event, ...]] = {}
    for name in ("reader", "writer", "unpack", "math", "pack"):
        if name in processors:
            named[name] = processors[name]
    return CoreClass("one", ((0, 0),), named, start or {})


def test_work_follows_work() -> None:
    found = replay([core(math=(Repeat(10, (Work("math", 7), Work("pack", 3))),))], RATES)
    assert found.cycles == 100
    assert (found.processors[0]["math"].busy, found.processors[0]["math"].waits) == (100, {})


@pytest.mark.parametrize(("pages", "cycles"), [(1, 10 * (20 + 30)), (2, 20 + 10 * 30), (4, 20 + 10 * 30)])
def test_a_buffer_of_two_pages_overlaps_producer_and_consumer(pages: int, cycles: int) -> None:
    made: tuple[Event, ...] = (*reserve("a", 1), Work("riscv", 20), *push("a", 1))
    used: tuple[Event, ...] = (*wait("a", 1), Work("unpack", 30), *pop("a", 1))
    found = replay([core({free("a"): pages}, reader=(Repeat(10, made),), unpack=(Repeat(10, used),))], RATES)
    assert found.cycles == cycles
    assert found.processors[0]["unpack"].waits == {"buffer": cycles - 300}


def test_two_banks_of_source_registers() -> None:
    """Math and unpack of neighbouring calls run at the same time."""
    unpack: tuple[Event, ...] = (Wait(SOURCES_FREE, 1, takes=True), Work("unpack", 40), Give(SOURCES_FULL, 1))
    math: tuple[Event, ...] = (Wait(SOURCES_FULL, 1, takes=True), Work("math", 30), Give(SOURCES_FREE, 1))
    found = replay([core(starting(), unpack=(Repeat(100, unpack),), math=(Repeat(100, math),))], RATES)
    assert found.cycles == 100 * 40 + 30
    assert found.processors[0]["math"].waits == {"registers": 100 * 40 - 99 * 30}


def test_transfers_share_dram_evenly() -> None:
    """64 cores read as fast as all banks together; one core, as fast as it gets pages of several banks."""
    count, size = 1000, 2048
    bytes_ = count * size
    events: tuple[Event, ...] = (Transfer("read", "dram", bytes_, count), Complete("read"))
    cores = tuple((x, y) for x in range(8) for y in range(8))
    latency = RATES.latency["read", "dram"]
    for number, rate in ((64, RATES.reading(1 / size) / 64), (1, RATES.core)):
        found = replay([CoreClass("all", cores[:number], {"reader": events})], RATES)
        assert found.cycles == pytest.approx(bytes_ / rate + latency, rel=1e-4)


def test_a_class_that_transfers_less_leaves_its_bandwidth_to_the_others() -> None:
    """Of two classes, the first ends early; from then on the second one has all of DRAM."""

    def reads(count: int) -> tuple[Event, ...]:
        return (Transfer("read", "dram", count * 2048, count), Complete("read"))

    cores = tuple((x, y) for x in range(8) for y in range(8))
    classes = [
        CoreClass("few", cores[:32], {"reader": reads(100)}), CoreClass("many", cores[32:], {"reader": reads(300)})
    ]  # fmt: skip
    found = replay(classes, RATES)
    rate = RATES.reading(1 / 2048)
    total = 32 * 400 * 2048 / rate
    assert found.cycles == pytest.approx(total + RATES.latency["read", "dram"], rel=1e-3)
    # Both have half of it until the first ends.
    ended = found.processors[0]["reader"].end
    assert ended == pytest.approx(64 * 100 * 2048 / rate + RATES.latency["read", "dram"], rel=1e-3)


def test_reads_and_writes_share_the_banks() -> None:
    """Both at once go no faster than the banks, and each no faster than its own limit."""
    size = 10_000 * 2048
    both: dict[ProcessorName, tuple[Event, ...]] = {
        "reader": (Transfer("read", "dram", size, 10_000), Complete("read")),
        "writer": (Transfer("write", "dram", size, 10_000), Complete("write")),
    }
    cores = tuple((x, y) for x in range(8) for y in range(8))
    together = replay([CoreClass("all", cores, both)], RATES).cycles
    alone = [replay([CoreClass("all", cores, {"reader": events})], RATES).cycles for events in both.values()]
    assert max(alone) <= together < sum(alone)


TILES = tuple(Transfer("read", "dram", 2048, 1) for _ in range(64))
SMALL = Transfer("read", "dram", 64, 1)
ZEROS = Transfer("read", "l1", 2048, 1)


@pytest.mark.parametrize("cores", [1, 64])
def test_transfers_of_several_sizes_take_their_time_in_any_order(cores: int) -> None:
    """A small read is slow for its size, because it takes as long to start as a tile: it adds to the others what it
    takes itself."""
    places = tuple((number % 8, number // 8) for number in range(cores))

    def cycles(*events: Event) -> int:
        return replay([CoreClass("all", places, {"reader": (*events, Complete("read"))})], RATES).cycles

    tiles, issue = cycles(*TILES), RATES.issue["read", "dram"]
    for mixed in (cycles(*TILES, SMALL), cycles(SMALL, *TILES), cycles(*TILES[:32], SMALL, *TILES[32:])):
        assert tiles < mixed <= tiles + max(issue, 64 * cores / RATES.reading(1 / 64)) + 2


@pytest.mark.parametrize("cores", [1, 4, 64])
def test_cores_that_are_not_in_step_hide_their_latency(cores: int) -> None:
    """A barrier after each page: alone, a core waits for its latency each time; where 64 wait for the banks, only the
    first time. Cores that wait for signals of others start their transfers together."""
    turns, size = 100, 2048
    page = (Transfer("read", "dram", size, 1), Complete("read"))
    own = Counter("own", "semaphore")
    places = tuple((x, 0) for x in range(cores))
    alone = CoreClass("alone", places, {"reader": (Repeat(turns, page),)})
    signalled = CoreClass(
        "alone", places, {"reader": (Repeat(turns, (Give(own, 1), Wait(own, 1, takes=True), *page)),)}
    )
    latency, rate = RATES.latency["read", "dram"], RATES.reading(1 / size)
    moved = max(size / RATES.core, cores * size / rate)
    hidden = min(latency, moved - size / RATES.core)
    together = replay([signalled], RATES).cycles
    assert together == pytest.approx(turns * (latency + moved), rel=0.01)
    assert replay([alone], RATES).cycles == pytest.approx(together - (turns - 1) * hidden, rel=0.02)


def test_zeros_from_l1_are_not_transfers_of_dram() -> None:
    """Beside tiles from DRAM, in any order, zeros take none of its bandwidth, and leave its limit to the tiles."""
    cores = tuple((x, y) for x in range(8) for y in range(8))

    def cycles(*events: Event) -> int:
        return replay([CoreClass("all", cores, {"reader": (*events, Complete("read"))})], RATES).cycles

    tiles = cycles(*TILES)
    assert tiles > 64 * 2048 * 64 / RATES.dram["read"]
    for events in ((ZEROS, *TILES), (*TILES, ZEROS)):
        assert tiles <= cycles(*events) <= tiles + 2048 / RATES.link + RATES.issue["read", "l1"] + 1
    # As many zeros as tiles are done while the tiles wait for DRAM.
    many = (ZEROS,) * 64
    assert cycles(*many) < cycles(*many, *TILES) < tiles + 64 * RATES.issue["read", "l1"] + 1


def test_transfers_of_one_core_share_its_link() -> None:
    """Alone on the chip, zeros and tiles take as long together as one after the other, while the tiles, which come no
    faster than DRAM sends them to one core, leave it to the zeros."""
    both = replay([core(reader=(*[ZEROS] * 64, *TILES, Complete("read")))], RATES).cycles
    moved = 64 * 2048
    assert both == pytest.approx(2 * moved / RATES.core + RATES.latency["read", "dram"], rel=0.15)
    assert both >= moved / RATES.link + moved / RATES.core


def test_transfers_without_bytes_take_no_time() -> None:
    nothing: tuple[Event, ...] = (Transfer("read", "dram", 0, 1), Transfer("write", "l1", 0, 0), MulticastSend(0, 0, 7))
    reads: tuple[Event, ...] = (SMALL, Complete("read"))
    plain = replay([core(reader=reads)], RATES)
    assert replay([core(reader=(*nothing, SMALL, *nothing, Complete("read")))], RATES) == plain
    # Complete has nothing to wait for.
    assert replay([core(reader=(*nothing, Complete("read"), Complete("write")))], RATES).cycles == 0


def test_a_multicast_without_bytes_is_its_flag() -> None:
    valid = Counter("valid", "semaphore")
    first = CoreClass("first", ((0, 0),), {"reader": (MulticastSend(0, 0, 1, valid, ("second",)),)})
    second = CoreClass("second", ((1, 0),), {"reader": (Wait(valid, 1),)})
    found = replay([first, second], RATES)
    assert found.stuck == ()
    assert found.cycles >= RATES.multicast_latency(1) // 2


def test_a_multicast_and_its_flag_take_no_longer_than_the_data() -> None:
    """The flag has 16 bytes, and follows as soon as one multicast follows another one."""
    data, flag = MulticastSend(65536, 8, 7), MulticastSend(16, 1, 7)
    alone, both = (
        replay([core(reader=(*events, Complete("write")))], RATES).cycles for events in ((data,), (data, flag))
    )
    assert alone < both <= alone + 16 / RATES.multicast_rate(7, 16) + 1


def test_signals_cross_the_noc() -> None:
    done = Counter("done", "semaphore")
    first = CoreClass("first", ((0, 0),), {"reader": (Work("riscv", 100), Signal(done, 1, "second"))})
    second = CoreClass("second", ((1, 0),), {"reader": (Wait(done, 1), Work("riscv", 5))})
    found = replay([first, second], RATES)
    assert found.cycles == 100 + RATES.signal + 5
    assert found.processors[1]["reader"].waits == {"semaphore": 100 + RATES.signal}


def test_what_never_ends_is_named() -> None:
    found = replay([core(reader=(Wait(filled("a"), 1),), writer=(Work("riscv", 3),))], RATES)
    assert found.stuck == ("reader of one",)


def test_a_free_resource_never_takes_longer() -> None:
    classes = matmul(N150, (512, 512, 512), 2048, "HiFi2")
    cycles = replay(classes, RATES).cycles
    found = {resource: replay(classes, rates_of(N150, resource)).cycles for resource in RESOURCES}
    assert all(one <= cycles for one in found.values())
    assert min(found.values()) < 0.9 * cycles


def test_periods_change_nothing() -> None:
    """With and without them: the same cycles, and the same work and waits of every processor."""
    for sizes in ((1024, 2048, 1024), (512, 1024, 1024), (640, 1024, 256)):
        classes = matmul(N150, sizes, 2048, "HiFi2")
        fast, slow = replay(classes, RATES), replay(classes, RATES, by_periods=False)
        assert slow.skipped == 0
        assert fast.cycles == pytest.approx(slow.cycles, rel=1e-3)
    assert replay(transfers("read", "l1", 4, 2048), RATES).skipped == 0


@pytest.mark.parametrize("seed", range(60))
def test_periods_of_random_pipelines(seed: int) -> None:
    """Three processors, nested loops of any lengths, buffers of any depth: events added as periods are those that one
    by one give."""
    draw = random.Random(seed)
    inner, outer = draw.randint(1, 30), draw.randint(1, 30)
    block, depth = draw.randint(1, 3), draw.randint(1, 3)

    def work(engine: str) -> Work:
        return Work("math" if engine == "math" else "pack", draw.randint(1, 200))

    # What fills the rest of a block, and part of a tile.
    rest: tuple[Event, ...] = (ZEROS, SMALL) if seed % 3 == 0 else ()
    read: tuple[Event, ...] = (
        *reserve("a", block), Transfer("read", "dram", block * 2048, block), *rest, Complete("read"), *push("a", block)
    )  # fmt: skip
    used: tuple[Event, ...] = (*wait("a", block), work("math"), *pop("a", block))
    stored: tuple[Event, ...] = (*wait("b", 1), Transfer("write", "dram", 4096, 2), Complete("write"), *pop("b", 1))
    one = CoreClass(
        "all", tuple((x, 0) for x in range(draw.randint(1, 8))),
        {
            "reader": (
                Repeat(outer, (Repeat(inner, read), work("pack"))) if seed % 2 else Repeat(outer * inner, read),
            ),
            "math": (Repeat(outer, (Repeat(inner, used), *reserve("b", 1), work("pack"), *push("b", 1))),),
            "writer": (Repeat(outer, stored),),
        },
        {free("a"): block * depth, free("b"): draw.randint(1, 2)},
    )  # fmt: skip
    fast, slow = replay([one], RATES), replay([one], RATES, by_periods=False)
    assert not fast.stuck
    assert fast.cycles == pytest.approx(slow.cycles, rel=2e-3)
    for name, time in slow.processors[0].items():
        assert fast.processors[0][name].busy == time.busy
    if outer * inner > 100:
        assert fast.skipped > 0


def test_events_are_joined() -> None:
    loop = Repeat(4, (Repeat(2, (Transfer("read", "dram", 100, 1),)),))
    assert joined([loop, Transfer("read", "dram", 100, 1)]) == (Transfer("read", "dram", 900, 9),)
    assert joined([Repeat(3, (Work("math", 5, 2),)), Work("math", 1)]) == (Work("math", 16, 6),)
    # Transfers of other sizes, and other engines, stay apart.
    assert len(joined([Transfer("read", "dram", 100, 1), Transfer("read", "dram", 50, 1)])) == 2
    turn: tuple[Event, ...] = (Work("math", 1), Work("pack", 1))
    assert joined([Repeat(1, turn), Repeat(3, turn), Repeat(0, turn)]) == (Repeat(4, turn),)


def test_sums_count_turns() -> None:
    events: tuple[Event, ...] = (
        Repeat(3, (Transfer("read", "dram", 100, 1), Repeat(2, (Work("math", 5, 4), Transfer("read", "l1", 8, 1))))),
        Transfer("write", "dram", 7, 1),
    )
    assert (moved_bytes(events, "read"), moved_bytes(events, "write"), useful_cycles(events)) == (300, 7, 24)


def test_a_replay_ends_at_a_limit() -> None:
    product = matmul(N150, (512, 512, 512), 2048, "HiFi2")
    for classes in ([core(math=(Work("math", 400),))], [core(reader=(*TILES, Complete("read")))], product):
        for resource in (None, *RESOURCES):
            rates = rates_of(N150, resource)
            cycles = replay(classes, rates).cycles
            assert cycles_within(classes, rates, cycles) == cycles_within(classes, rates, cycles + 1) == cycles
            assert cycles_within(classes, rates, cycles - 1) is None
            assert cycles < 2 or cycles_within(classes, rates, cycles / 2) is None
