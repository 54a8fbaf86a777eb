"""The bytes over the links of the NoCs, against routes that are walked hop by hop, and against published times."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pytest

from tests.clock.published import FORMATS, GEMMS, Gemm
from tests.clock.sdk import blocking
from tests.corpus.sums import split_k
from ttexplore import Exploration, explore
from ttexplore.clock.closed_form import predicted_moves
from ttexplore.clock.estimate import Estimate
from ttexplore.clock.program import core_classes
from ttexplore.noc_links import Link, LinkLoads, Way, busiest_cycles, link_loads
from ttexplore.plan import CoreRange, Loader, Multicast, Plan, SharedInput, TensorLayout
from ttexplore.target import Target, get_target

KERNEL = "notebooks/kernels/gemm.py::matmul"
WORMHOLE, BLACKHOLE = get_target("wormhole_n150"), get_target("blackhole_p150")


def walked(target: Target, noc: int, start: tuple[int, int], end: tuple[int, int]) -> list[Link]:
    """The links of a packet: NoC 0 goes right and then down, NoC 1 up and then left, both round the edges."""
    columns, rows = target.noc_grid
    (x, y), found = start, list[Link]()
    while (x, y) != end:
        if noc == 0 and x != end[0]:
            found.append(Link(0, x, y, "right"))
            x = (x + 1) % columns
        elif noc == 0:
            found.append(Link(0, x, y, "down"))
            y = (y + 1) % rows
        elif y != end[1]:
            found.append(Link(1, x, y, "up"))
            y = (y - 1) % rows
        else:
            found.append(Link(1, x, y, "left"))
            x = (x - 1) % columns
    return found


def tensor(name: str, position: int) -> TensorLayout:
    return TensorLayout(name, position, "input", (32, 32), "bfloat16", "Float16_b", (32, 32))


def loads(
    target: Target, moved: dict[tuple[Loader, Way, str], int], cores: tuple[tuple[int, int], ...] = ((0, 0),),
    shared: tuple[SharedInput, ...] = (),
) -> LinkLoads:  # fmt: skip
    names = dict.fromkeys(name for *_, name in moved)
    plan = Plan("one", target.name, layouts=tuple(map(tensor, names, range(len(names)))), shared=shared)
    return link_loads([(cores, moved)], plan, target)


def estimated(exploration: Exploration) -> Estimate:
    found = exploration.estimate()
    assert isinstance(found, Estimate)
    return found


@pytest.mark.parametrize("target", [WORMHOLE, BLACKHOLE], ids=lambda one: one.name)
@pytest.mark.parametrize(("processor", "noc"), [("reader", 0), ("writer", 1)])
@pytest.mark.parametrize("way", ["read", "write"])
def test_a_core_reads_from_all_banks_and_writes_to_them(target: Target, processor: Loader, noc: int, way: Way) -> None:
    core = (3, 4)
    expected: Counter[Link] = Counter()
    for bank in target.bank_nodes(0 if noc == 0 else 1):
        ends = (bank, target.physical(*core)) if way == "read" else (target.physical(*core), bank)
        for link in walked(target, noc, *ends):
            expected[link] += 100
    assert loads(target, {(processor, way, "A"): 100 * target.dram_banks}, (core,)).carried == expected


def test_the_banks_are_those_of_the_allocator() -> None:
    """Read from a mock device, NoC 0 and 1 alike; on Blackhole, from the `dram_views` of the soc descriptor."""
    listed = [(0, 11), (0, 1), (0, 5), (0, 7), (5, 1), (5, 11), (5, 2), (5, 9), (5, 8), (5, 3), (5, 5), (5, 7)]
    assert list(WORMHOLE.bank_nodes(0)) == list(WORMHOLE.bank_nodes(1)) == listed
    rows = {0: (11, 2, 9, 5, 11, 3, 8, 6), 1: (1, 10, 4, 7, 1, 10, 4, 7)}
    columns = (0, 0, 0, 0, 9, 9, 9, 9)
    assert BLACKHOLE.bank_nodes(0) == tuple(zip(columns, rows[0], strict=True))
    assert BLACKHOLE.bank_nodes(1) == tuple(zip(columns, rows[1], strict=True))
    assert get_target("blackhole_p100").bank_nodes(1) == BLACKHOLE.bank_nodes(1)[:7]


def sending(sender: tuple[int, int], first: tuple[int, int], last: tuple[int, int]) -> tuple[SharedInput, ...]:
    topology = "row" if first[1] == last[1] else "column" if first[0] == last[0] else "grid"
    return (SharedInput("A", "A_shared", topology, 0, 1, (Multicast(sender, CoreRange(first, last)),), 0, 0),)


@pytest.mark.parametrize(
    ("processor", "sender", "first", "last"),
    [
        ("reader", (0, 2), (0, 2), (7, 2)),
        ("writer", (7, 2), (0, 2), (7, 2)),
        ("reader", (3, 0), (3, 0), (3, 7)),
        ("reader", (0, 0), (0, 0), (2, 2)),
        ("writer", (2, 2), (0, 0), (2, 2)),
        ("writer", (0, 0), (0, 0), (2, 1)),
    ],
)
def test_a_multicast_uses_each_link_of_its_tree_once(
    processor: Loader, sender: tuple[int, int], first: tuple[int, int], last: tuple[int, int]
) -> None:
    """The tree has the ways to the first column of the rectangle, and from there through each of its rows."""
    noc, shared = (0 if processor == "reader" else 1), sending(sender, first, last)
    found = loads(WORMHOLE, {(processor, "multicast", "A"): 64}, (sender,), shared)
    assert {*found.carried.values()} == {64}
    ends = [WORMHOLE.physical(*one) for one in shared[0].destinations(shared[0].multicasts[0])]
    (left, top), (right, bottom) = ends
    start, tree = WORMHOLE.physical(*sender), set[Link]()
    near, far = (left, right) if noc == 0 else (right, left)
    for row in range(top, bottom + 1):
        along = walked(WORMHOLE, noc, start, (near, start[1])) + walked(WORMHOLE, noc, (near, start[1]), (near, row))
        tree |= {*along, *walked(WORMHOLE, noc, (near, row), (far, row))}
    assert {*found.carried} == tree


def test_a_row_that_gets_blocks_sends_them_through_the_column_of_dram() -> None:
    found = loads(WORMHOLE, {("reader", "multicast", "A"): 64}, ((0, 0),), sending((0, 0), (0, 0), (7, 0)))
    assert [(link.x, link.y, link.step) for link in found.carried] == [(x, 1, "right") for x in range(1, 9)]


@pytest.mark.parametrize("options", [{"multicast": "off"}, {"multicast": "all"}, {"loaded_by": "both"}], ids=str)
def test_what_enters_the_links_is_what_the_program_moves(options: dict[str, str]) -> None:
    """The bytes that leave the nodes of DRAM for other nodes are those that are read, as no node of DRAM is on the way
    to itself."""
    exploration = explore(KERNEL, M=512, N=512, K=256, block_M=128, block_N=128, options=options)
    found = estimated(exploration)
    read = sum(
        times * len(one.cores)
        for one in found._gains.classes  # pyright: ignore[reportPrivateUsage]
        for (_, way, _), times in one.moved.items()
        if way == "read"
    )
    assert read == found.read_bytes
    hops = sum(found.links.carried.values())
    assert read < hops


def test_more_cores_in_a_column_share_its_links() -> None:
    """Eight cores of a column wait for the links of that column, eight of a row have links of their own."""

    def most(cores: tuple[int, int]) -> int:
        options = {"cores": cores, "multicast": "off"}
        return estimated(
            explore(KERNEL, M=512, N=256, K=256, block_M=128, block_N=128, options=options)
        ).links.most_bytes

    assert most((1, 8)) > 2 * most((8, 1))


def test_no_program_is_faster_than_its_busiest_link() -> None:
    """The replay of eight cores of a column is: it does not know that they share the links of their column."""

    def on(cores: tuple[int, int]) -> Estimate:
        options = {"cores": cores, "multicast": "off", "loaded_by": "reader"}
        return estimated(
            explore(KERNEL, M=1024, N=512, K=1024, block_M=128, block_N=64, block_K=128, options=options)
        )  # fmt: skip

    found = on((1, 8))
    launch = WORMHOLE.costs.launch_cycles / WORMHOLE.clock_hz * 1e6
    assert max(one.end_us for one in found.cores) < found.links.us
    assert found.us == pytest.approx(found.links.us + launch)
    assert found.bound == "NoC"
    assert found.us - found.gains_us["NoC"] < found.links.us
    assert all(saved == 0 for name, saved in found.gains_us.items() if name not in ("NoC", "launch"))
    row = on((8, 1))
    assert row.us == pytest.approx(max(one.end_us for one in row.cores) + launch)


def test_a_shard_that_is_matched_needs_no_links() -> None:
    add = "notebooks/kernels/elementwise.py::add"
    layouts = {name: {"shard": "height"} for name in "ABC"}
    options = {"layouts": layouts, "policy": "match_shard", "match": "A"}
    assert not estimated(explore(add, M=256, N=256, options=options)).links.carried
    assert estimated(explore(add, M=256, N=256, options={"layouts": layouts})).links.carried


def test_the_estimate_tells_the_busiest_link() -> None:
    exploration = explore(KERNEL, M=256, N=256, K=256)
    found = estimated(exploration)
    link = found.links.busiest
    assert link is not None
    assert f"over the busiest link, {link}: " in str(found)
    told = found.to_json()["links"]
    assert told["bytes"] == found.links.carried[link] == max(found.links.carried.values())
    rate = WORMHOLE.costs.noc_payload_bytes_per_cycle
    assert told["us"] == ceil(told["bytes"] / rate) / WORMHOLE.clock_hz * 1e6
    assert "NoC link bytes (estimate) of wormhole_n150" in exploration.link_map.svg


Moves = dict[tuple[int, int], dict[tuple[Loader, Way, str], int]]


def sdk_loads(row: Gemm) -> LinkLoads:
    """Those of the SDK's matmul. Its left cores read A and send it along their rows over NoC 1, its upper cores B along
    their columns over NoC 0, over which all cores write (matmul_multicore_reuse_mcast_2d_program_factory); of wide
    products, one core sends A to all, and each has columns of B of its own (get_mcast_1d_config)."""
    target = row.target
    m, k, n = (size // 32 for size in row.sizes)
    tile_bytes, _ = FORMATS[row.format]
    columns, rows = target.compute_grid
    cores = [(x, y) for y in range(rows) for x in range(columns)]
    moves: Moves = {}
    if ceil(m / 16) == 1 and n > 16:
        wide = cores[: n // ceil(n / len(cores))]
        shared = (SharedInput("A", "a", "grid", 0, 1, (Multicast((0, 0), CoreRange((0, 0), wide[-1])),), 0, 0),)
        a, b, c = m * k, k * ceil(n / len(cores)), m * ceil(n / len(cores))
        for core in wide:
            moves[core] = {("reader", "read", "B"): b, ("reader", "write", "C"): c}
        moves[0, 0] |= {("writer", "read", "A"): a, ("writer", "multicast", "A"): a}
    else:
        made = blocking(target.compute_grid, m * 32, k * 32, n * 32, tile_bytes, target.l1_usable_bytes)
        blocks = made.row_blocks * made.column_blocks * k // made.depth
        a, b = blocks * made.rows * made.depth, blocks * made.depth * made.columns
        c = made.row_blocks * made.column_blocks * made.rows * made.columns
        along = tuple(Multicast((0, y), CoreRange((0, y), (columns - 1, y))) for y in range(rows))
        down = tuple(Multicast((x, 0), CoreRange((x, 0), (x, rows - 1))) for x in range(columns))
        shared = (
            SharedInput("A", "a", "row", 0, 1, along, 0, 0), SharedInput("B", "b", "column", 2, 3, down, 0, 0),
        )  # fmt: skip
        for x, y in cores:
            moves[x, y] = {("reader", "write", "C"): c}
            if x == 0:
                moves[x, y] |= {("writer", "read", "A"): a, ("writer", "multicast", "A"): a}
            if y == 0:
                moves[x, y] |= {("reader", "read", "B"): b, ("reader", "multicast", "B"): b}
    plan = Plan("matmul", target.name, layouts=tuple(map(tensor, "ABC", range(3))), shared=shared)
    return link_loads(
        [((core,), {what: tiles * tile_bytes for what, tiles in moved.items()}) for core, moved in moves.items()],
        plan, target,
    )  # fmt: skip


def test_no_published_time_is_shorter_than_its_busiest_link() -> None:
    for row in GEMMS:
        assert sdk_loads(row).us < row.us, row


@pytest.mark.parametrize("target", [WORMHOLE, BLACKHOLE], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "options",
    [
        {}, {"multicast": "off"}, {"loaded_by": "reader"}, {"cores": (3, 2), "multicast": "all"},
        {"multicast": {"A": "grid"}, "policy": "rectangular", "loaded_by": "auto"},
        {"layouts": {"A": {"memory": "L1"}}, "loaded_by": {"A": "writer"}},
    ],
    ids=str,
)  # fmt: skip
def test_the_loads_that_choices_are_made_from_are_those_of_the_program(target: Target, options: dict[str, Any]) -> None:
    """Before there are transfers: of blocks that are read, sent and stored, on both NoCs."""
    exploration = explore(
        KERNEL, M=512, N=256, K=256, block_M=64, block_N=64, block_K=64, target=target, options=options
    )  # fmt: skip
    assert exploration.error is None
    plan, work = exploration.plan, exploration.steps[-1].after.work
    assert plan.graph is not None
    assert work is not None
    by_writer = {edge.source for edge in plan.graph.edges if edge.target == "writer"} & {"A", "B"}
    moves = predicted_moves(work, plan, by_writer)
    found = link_loads(moves, plan, target)
    assert found.carried == estimated(exploration).links.carried
    assert found.cycles == busiest_cycles(moves, plan, target)


def test_partial_sums_go_to_the_next_core_of_their_chain() -> None:
    """Two cores side by side: the writer's NoC goes left, once round the row but for one link."""
    exploration = explore(split_k(32, 32, 128, 2), options={"partials": "noc", "cores": (2, 1)})
    final = exploration.steps[-1].after
    handed_on = [
        (one.cores, {what: count for what, count in one.moved.items() if what[1] == "hand on"})
        for one in core_classes(final.functions, final.plan, exploration.target)
    ]
    carried = link_loads(handed_on, final.plan, exploration.target).carried
    way = walked(exploration.target, 1, *(exploration.target.physical(x, 0) for x in (0, 1)))
    assert {one.step for one in way} == {"left"}
    assert carried == dict.fromkeys(way, 32 * 32 * 4)
