"""B1 and B2: every policy gives each work item to one core, and the loop that is made does what the plan says."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx

import ttexplore as ttx
from tests.corpus.schedules import WORK_LISTS, blocks
from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.analysis.work_orders import in_order
from ttexplore.errors import ResourceError, TTExploreError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.build import op_name, statements
from ttexplore.ir.program import KERNEL, TirProgram
from ttexplore.language.tracer.kernel import trace
from ttexplore.options import Options, parse_order
from ttexplore.passes.grid_to_core_grid import grid_to_core_grid
from ttexplore.passes.layout_aware_work_partition import layout_aware_work_partition
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.plan import CoreWork, Partition, Plan, item_block, item_number
from ttexplore.record import Listing
from ttexplore.target import TARGETS, get_target

TARGET = get_target("wormhole_n150")
B1 = next(step for step in PIPELINE if step.letter == "B1")


def partitioned(grid: tuple[int, ...], **options: Any) -> tuple[Partition, TirProgram, list[Any]]:
    """The partition, the program after B2, and the kernel's block variables."""
    traced = trace(blocks(grid[0], *grid[1:]) if len(grid) > 1 else blocks(grid[0], 1))
    given: dict[str, Any] = {"multicast": "off", "loaded_by": "reader", **options}
    used = Options(**given)
    start = TirProgram({KERNEL: traced.function}, Plan("copy", TARGET.name), Listing("python", ()), used)
    by_name = used.by_name
    program = layout_aware_work_partition(start, TARGET, **{name: by_name[name] for name in B1.options})
    assert program.plan.partition is not None
    blocks_of = [loop.loop_var for loop in grid_loops(program.kernel)]
    return program.plan.partition, grid_to_core_grid(program, TARGET), blocks_of


class _Core:
    """What `tt` stands for in the text of a loop: the arguments of one core."""

    def __init__(self, core: CoreWork) -> None:
        self.core = core

    def core_value(self, name: str) -> int:
        return self.core.values[name]

    def core_item(self, name: str, position: int) -> int:
        return self.core.listed[position]


def done_by_loop(program: TirProgram, core: CoreWork, axes: list[Any]) -> list[int]:
    """The work items of the loop that B2 made, found by running its text."""
    partition = program.plan.partition
    assert partition is not None
    found: list[int] = []

    def run(body: list[Any], values: dict[Any, Any]) -> None:
        def value(expression: Any) -> int:
            text = format_expression(expression, lambda variable: f"values[{names_of[variable]!r}]")
            return eval(text, {"tt": _Core(core), "values": values})

        for statement in body:
            if isinstance(statement, tirx.Bind):
                values = values | {names_of.setdefault(statement.var, len(names_of)): value(statement.value)}
            elif isinstance(statement, tirx.For):
                key = names_of.setdefault(statement.loop_var, len(names_of))
                for turn in range(value(statement.extent)):
                    run(statements(statement.body), values | {key: turn})
            elif op_name(statement) == "tl.copy":
                found.append(item_number(partition.grid, *(values[names_of[axis]] for axis in axes)))
                return

    names_of: dict[Any, int] = {}
    run(statements(program.kernel.body), {})
    return found


grids = st.one_of(
    st.tuples(st.integers(1, 12)),
    st.tuples(st.integers(1, 9), st.integers(2, 7)),
    st.tuples(st.integers(1, 5), st.integers(2, 4), st.integers(1, 3)),
)
orders = st.sampled_from(["row_major", "column_major", "z_order", "block_linear", "block_linear(1)", "block_linear(3)"])


@st.composite
def core_sets(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        x, y = draw(st.integers(0, 7)), draw(st.integers(0, 7))
        return {"cores": (draw(st.integers(1, 8 - x)), draw(st.integers(1, 8 - y))), "core_offset": (x, y)}
    rows = sorted(draw(st.sets(st.integers(0, 7), min_size=1, max_size=3)))
    return {"core_ranges": [((first := draw(st.integers(0, 7)), y), (draw(st.integers(first, 7)), y)) for y in rows]}


@given(grids, st.sampled_from(["contiguous", "strided", "rectangular", "balanced"]), orders, core_sets())
@settings(max_examples=60, deadline=None)
def test_each_item_once_and_the_loop_does_what_the_plan_says(
    grid: tuple[int, ...], policy: str, order: str, cores: dict[str, Any]
) -> None:
    if policy == "rectangular" and len(cores.get("core_ranges", ())) > 1:
        policy = "contiguous"
    partition, program, axes = partitioned(grid, policy=policy, order=order, **cores)
    done = [[*partition.items_of(core)] for core in partition.cores]
    assert sorted(item for items in done for item in items) == list(range(prod(grid)))
    allowed = {core for one in partition.core_ranges for core in one.cores}
    places = [(core.x, core.y) for core in partition.cores]
    assert len(set(places)) == len(places)
    assert set(places) <= allowed
    name, edge = parse_order(order)
    for core, items in zip(partition.cores, done, strict=True):
        assert core.items == len(items) > 0
        assert items == in_order(grid, name, edge, items)
        assert done_by_loop(program, core, axes) == items
    if policy == "contiguous":
        assert [item for items in done for item in items] == in_order(grid, name, edge)


@given(grids, st.data())
@settings(max_examples=25, deadline=None)
def test_work_lists_are_taken_as_they_are(grid: tuple[int, ...], data: st.DataObject) -> None:
    items = data.draw(st.permutations(range(prod(grid))))
    cut = data.draw(st.integers(0, len(items)))
    lists = {(3, 2): items[:cut], (0, 7): [item_block(grid, item) for item in items[cut:]]}
    partition, program, axes = partitioned(grid, work_lists=lists)
    assert partition.policy == "explicit"
    wanted = {core: done for core, done in (((3, 2), items[:cut]), ((0, 7), items[cut:])) if done}
    assert {(core.x, core.y): [*partition.items_of(core)] for core in partition.cores} == wanted
    for core in partition.cores:
        assert done_by_loop(program, core, axes) == wanted[(core.x, core.y)]


def test_z_order_goes_along_the_curve_of_any_grid() -> None:
    assert [item_block((5, 3), item) for item in in_order((5, 3), "z_order", None)] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1), (0, 2), (1, 2), (2, 2), (3, 2), (4, 0), (4, 1),
        (4, 2),
    ]  # fmt: skip


def test_block_linear_goes_square_by_square() -> None:
    assert in_order((5, 3), "block_linear", 2) == [0, 1, 5, 6, 2, 3, 7, 8, 4, 9, 10, 11, 12, 13, 14]


def explored(**options: Any) -> Exploration:
    exploration = ttx.explore(blocks(), options=options)
    assert exploration.error is None, str(exploration.error)
    return exploration


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "z_order", "cores": (2, 2)}, {"policy": "block-linear(2)", "cores": (3, 1)},
        {"order": "column_major", "cores": (4, 1)}, {"policy": "rectangular", "order": "z_order", "cores": (2, 2)},
        {"work_lists": WORK_LISTS}, {"core_ranges": [((7, 7), (7, 7)), ((0, 1), (0, 2))]},
    ],
)  # fmt: skip
def test_the_emitted_loop_reads_the_items_in_order(options: dict[str, Any]) -> None:
    """The pages that each core reads as the C++ text runs: page n is item n of this kernel."""
    exploration = explored(**options)
    run = exploration.run()
    assert run.passed
    assert run.execution is not None
    events = run.execution.events
    partition = exploration.plan.partition
    assert events is not None
    assert partition is not None
    reads = events.records[events.records["operation"] == events.operations.index("read")]
    for index, core in enumerate(partition.cores):
        assert reads[reads["core"] == index]["amount"].tolist() == [*partition.items_of(core)]


def test_orders_that_count_up_need_no_lists() -> None:
    """One item for each core, and a grid of one row: nothing to list."""
    partition = explored(policy="z_order").plan.partition
    assert partition is not None
    assert (partition.policy, partition.form, len(partition.cores)) == ("z_order", "range", 15)
    text = explored(policy="z_order", cores=(2, 2)).code["reader"].text
    assert "const uint32_t work = get_arg_val<uint32_t>(1 + item);" in text
    assert "// per core arguments: work_count, work_items" in text


@pytest.mark.parametrize("target", TARGETS)
def test_more_cores_than_work_and_all_cores(target: str) -> None:
    chip = get_target(target)
    few = ttx.explore(blocks(3, 1), target=target).plan.partition
    assert few is not None
    assert [(core.x, core.y) for core in few.cores] == [(0, 0), (1, 0), (2, 0)]
    columns, rows = chip.compute_grid
    full = ttx.explore(blocks(columns, rows), target=target, options={"policy": "strided"})
    assert full.plan.partition is not None
    assert len(full.plan.partition.cores) == chip.cores
    assert full.run().passed


@pytest.mark.parametrize(("name", "harvested"), [("wormhole_n150", [1, 7]), ("blackhole_p150", [3, 4, 12])])
def test_harvested_chips(name: str, harvested: list[int]) -> None:
    """Logical coordinates skip what is harvested; programs speak of logical coordinates alone."""
    chip = get_target(name, harvested=harvested)
    exploration = ttx.explore(blocks(), target=chip, options={"policy": "z_order", "cores": (2, 3)})
    assert exploration.run().passed
    partition = exploration.plan.partition
    assert partition is not None
    axis = 1 if chip.arch == "wormhole_b0" else 0
    assert not {chip.physical(core.x, core.y)[axis] for core in partition.cores} & set(harvested)
    columns, rows = chip.compute_grid
    outside = ttx.explore(blocks(), target=chip, options={"core_ranges": [((0, 0), (columns, rows - 1))]})
    assert isinstance(outside.error, ResourceError)


def refused(kind: type[TTExploreError], **options: Any) -> str:
    """The error of B1, or of the option itself."""
    try:
        exploration = ttx.explore(blocks(), options=options)
    except TTExploreError as raised:
        error = raised
    else:
        assert exploration.error is not None
        assert exploration.steps[-1].letter == "B1"
        error = exploration.error
    assert isinstance(error, kind), repr(error)
    assert error.hint
    return str(error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "contigous"}, "there is no policy 'contigous'\n  hint: did you mean contiguous? use one of"),
        ({"order": "colum_major"}, "there is no order 'colum_major'\n  hint: did you mean column_major? use one of"),
        ({"order": "z_order(2)"}, "the order z_order takes no number"),
        ({"order": "block_linear(0)"}, "'block_linear(0)' has no valid square size"),
        ({"policy": "z_order", "order": "row_major"}, "the policy z_order implies its own order, but the order"),
        ({"policy": "explicit"}, "the policy explicit needs work lists"),
        ({"policy": "strided", "work_lists": WORK_LISTS}, "work lists and another policy or order are given"),
        ({"cores": (1, 1), "core_ranges": [((0, 0), (1, 1))]}, "core_ranges and cores are both given"),
        ({"core_ranges": []}, "core_ranges is empty"),
        ({"core_ranges": [(0, 1)]}, "(0, 1) is not a range of cores\n  hint: write its corners, both included: "),
        ({"core_ranges": [((0, 0), (2, 2)), ((2, 2), (3, 3))]}, "core (2, 2) is in two of the core ranges"),
        (
            {"policy": "rectangular", "core_ranges": [((0, 0), (0, 0)), ((2, 2), (3, 3))]},
            "the policy rectangular needs one rectangle of cores, 2 are given",
        ),
        (
            {"work_lists": {(1, 1): [0, 5, 5], (0, 0): [6, 7]}},
            "the work lists do not hold each of the 15 work items exactly once; missing: 1 (1, 0), 2 (2, 0), 3 (3, 0), "
            "4 (4, 0), 8 (3, 1), 9 (4, 1), 10 (0, 2), 11 (1, 2) and 3 more; repeated: 5 (0, 1)",
        ),
        ({"work_lists": {(1, 1): [15]}}, "15 is not a work item of the grid 5 x 3\n  hint: give a number from 0 to 14"),
        ({"work_lists": {(1, 1): [(1, 3)]}}, "(1, 3) is not a work item of the grid 5 x 3"),
        ({"work_lists": [((1, 1), [0]), ((1, 1), [1])]}, "core (1, 1) has two work lists"),
        ({"work_lists": [5]}, "5 is not a work list\n  hint: write {(x, y): [item, ...]}"),
        (
            {"work_lists": {(1, 1): list(range(15))}, "cores": (1, 1)},
            "core (1, 1) gets work but is not among the cores",
        ),
    ],
)  # fmt: skip
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    assert refused(UsageError, **options).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cores": (9, 1)}, "9x1 cores are requested; wormhole_n150 has 8x8"),
        ({"cores": (4, 4), "core_offset": (5, 0)}, "4x4 cores from (5, 0) on are requested; wormhole_n150 has 8x8"),
        ({"core_offset": (8, 9)}, "the cores from (8, 9) on are requested; wormhole_n150 has 8x8"),
        ({"core_ranges": [((3, 3), (2, 3))]}, "the cores (3, 3) to (2, 3) are requested; wormhole_n150 has 8x8"),
        ({"work_lists": {(8, 0): list(range(15))}}, "core (8, 0) gets work; wormhole_n150 has 8x8"),
    ],
)
def test_cores_that_are_not_there(options: dict[str, Any], message: str) -> None:
    assert refused(ResourceError, **options).startswith(message)


def test_lists_that_are_too_long_for_the_arguments() -> None:
    exploration = ttx.explore(blocks(80, 60), options={"policy": "z_order", "cores": (1, 1)})
    assert isinstance(exploration.error, ResourceError)
    assert "the reader has 4802 words of runtime arguments; wormhole_n150 takes 4094" in str(exploration.error)
    assert "use more cores, or a policy whose items count up" in exploration.error.hint
