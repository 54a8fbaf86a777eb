"""B1: assign work items to cores."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from ttexplore.analysis.core_sets import Core
from ttexplore.analysis.core_sets import core_ranges as core_ranges_of
from ttexplore.analysis.launch_grid import grid_extents, grid_loops
from ttexplore.analysis.work_orders import common_step, in_order
from ttexplore.clock.closed_form import microseconds, predicted_us
from ttexplore.errors import ResourceError, Unsupported, UsageError, shown
from ttexplore.ir.adapter import span_of
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.notes import note
from ttexplore.options import OPTIONS, parse_order, parse_policy
from ttexplore.passes.layout_aware_work_partition.balanced_work import (
    balanced_items,
    cycles_by_number,
    longest_cycles,
)
from ttexplore.passes.layout_aware_work_partition.item_work import item_cycles, item_works
from ttexplore.passes.layout_aware_work_partition.partial_sums import with_partial_sums
from ttexplore.passes.layout_aware_work_partition.shard_work import (
    TensorCopy,
    moves_own_shard,
    shard_of,
    shard_tiles,
    tensor_copies,
    tensors_moved,
    tile_of,
    whole_buffer,
)
from ttexplore.passes.layout_aware_work_partition.shared_inputs import with_shared_inputs
from ttexplore.passes.step import Pass
from ttexplore.plan import (
    MOST_LISTED_ITEMS,
    MOST_WORK_ITEMS,
    TILE_COLUMNS,
    Candidate,
    Choice,
    CircularBuffer,
    CoreRange,
    CoreWork,
    Mode,
    Order,
    Partition,
    Policy,
    TensorLayout,
    Topology,
    item_block,
    item_number,
    launch_extents,
    rectangle_items,
)
from ttexplore.record import Span
from ttexplore.target import Target

_SCHEDULE = ("policy", "order", "rectangle", "stride", "match")
# A work item as users give it: its number, or its block.
WorkItem = int | Sequence[int]
# The most items or cores that an error lists.
_SHOWN = 8
# The predicted time of balanced work, against that of contiguous runs, that it is for: predictions are not exact.
_WORTH = 0.97


def layout_aware_work_partition(
    program: TirProgram,
    target: Target,
    *,
    policy: Policy | str | None,
    order: str | None,
    cores: tuple[int, int] | None,
    core_offset: tuple[int, int],
    core_ranges: Sequence[tuple[Core, Core]] | None,
    work_lists: Mapping[Core, Sequence[WorkItem]] | None,
    rectangle: tuple[int, int] | None,
    stride: int | None,
    match: str | None,
    mode: Mode,
    multicast: str | Mapping[str, Topology],
) -> TirProgram:
    """Assign each work item (block of the launch grid) to exactly one core.

        with T.Kernel(8, 8) as (bx, by):       64 work items
    ==> core (0, 0): work_start 0, work_count 1; core (1, 0): work_start 1, ...

    `policy` decides the assignment: ``contiguous`` gives each core a run of consecutive items, ``strided`` distributes
    items round-robin, ``rectangular`` gives each core a rectangle of the launch grid. `rectangle` is the size of that
    rectangle in (columns, rows) of blocks, by default an even division among the cores; `stride` is the number of cores
    in the round-robin, by default all.

    `order` is the order in which items are divided into runs and processed: ``row_major``, ``column_major``,
    ``block_linear(k)`` (square groups of k by k blocks) or ``z_order`` (the Morton curve, which keeps neighbouring
    blocks together). The policies ``block_linear`` and ``z_order`` are contiguous runs in these orders. `work_lists`
    lists the items of each core explicitly, as numbers or blocks: ``{(0, 0): [0, (1, 0)]}``.

    ``match_shard`` assigns each item to the core whose L1 holds the shard in which the item's block of the tensor
    `match` starts. With the mode ``local_shard``, each core works on its own shards in place: a circular buffer
    aliases the shard, and nothing is copied.

    ``balanced`` predicts how long each item takes, where the lengths of loops follow from its place in the launch grid,
    as under a causal mask, and gives the longest one first to the core with the least work.

    `cores` is (columns, rows), starting at `core_offset`; the default is the target's whole compute grid. Instead,
    `core_ranges` may list rectangles of cores by corners, both inclusive: ``[((0, 0), (3, 1)), ((6, 0), (6, 7))]``.

    Cores that update the same blocks of a tensor hand these on to one another where A0 has left them on several cores.

    With `multicast`, one core reads what several need at the same step, and sends it along a row or column, or to a
    grid: with ``auto``, what makes the predicted time shorter. If no `policy` or `order` is given, it is contiguous, or
    rectangular if the predicted time with shared inputs is then shorter, or balanced if items take different times.
    """
    program = assign_work_items(
        program, target, policy=policy, order=order, cores=cores, core_offset=core_offset, core_ranges=core_ranges,
        work_lists=work_lists, rectangle=rectangle, stride=stride, match=match, mode=mode,
    )  # fmt: skip
    return balance_work_items(choose_shared_inputs(program, target, multicast=multicast), target)


def assign_work_items(
    program: TirProgram,
    target: Target,
    *,
    policy: Policy | str | None,
    order: str | None,
    cores: tuple[int, int] | None,
    core_offset: tuple[int, int],
    core_ranges: Sequence[tuple[Core, Core]] | None,
    work_lists: Mapping[Core, Sequence[WorkItem]] | None,
    rectangle: tuple[int, int] | None,
    stride: int | None,
    match: str | None,
    mode: Mode,
) -> TirProgram:
    """Assign each work item (block of the launch grid) to exactly one core.

        with T.Kernel(8, 8) as (bx, by):       64 work items
    ==> core (0, 0): work_start 0, work_count 1; core (1, 0): work_start 1, ...

    The options say which core gets which items, as :func:`layout_aware_work_partition` describes. Cores that update the
    same blocks of a tensor hand these on to one another where A0 has left them on several cores.
    """
    policy, order, edge = _policy_and_order(policy, order, work_lists)
    for option, value in {"rectangle": rectangle, "stride": stride, "match": match}.items():
        if value is not None and policy != (owner := OPTIONS[option].policy):
            raise UsageError("U010", f"{option} is given, but the policy is {policy}", hint=f"use policy={owner!r}")
    if program.plan.sizes and (policy == "match_shard" or mode == "local_shard"):
        raise Unsupported(
            "L014",
            f"{policy if policy == 'match_shard' else mode} for a kernel with sizes that are known only at run time",
            hint="give the kernel constant sizes, or use another policy and mode='global'",
        )
    # The lowered kernels must work for all sizes: every core takes part, even without work.
    sizes = program.plan.sizes
    grid = grid_extents(program.kernel, program.plan.size_values)
    _check_size(grid, policy, order, mode, span_of(grid_loops(program.kernel)[0]))
    allowed = core_ranges_of(target, cores, core_offset, core_ranges)
    match policy:
        case "explicit":
            assert work_lists is not None, "the policy follows from it"
            if sizes:
                raise UsageError(
                    "U008",
                    f"work lists need a constant grid, but this grid depends on "
                    f"{', '.join(size.name for size in sizes)}",
                    hint="use a policy instead",
                )
            work = _explicit(grid, work_lists)
            if not (cores or core_ranges):
                allowed = tuple(CoreRange(core, core) for core in work)
            _check_cores(work, allowed, target)
            assignment = _with_lists(work, order)
        case "rectangular":
            assignment = _rectangular(grid, allowed, order, edge, rectangle, any_size=bool(sizes))
        case "match_shard":
            assignment = _with_lists(_by_shard(program, grid, match, order, edge), order)
        case "balanced":
            by_place = None if sizes else item_cycles(program, target)
            if by_place is None:
                raise Unsupported(
                    "L014",
                    "the policy balanced for a kernel whose work items take times that are known only when it runs",
                    hint="use policy='strided', or let sizes and lengths of loops follow from numbers",
                    span=span_of(grid_loops(program.kernel)[0]),
                )
            usable = [core for core_range in allowed for core in core_range.cores]
            cycles = cycles_by_number(grid, by_place)
            assignment = _with_lists(balanced_items(grid, usable, order, edge, cycles), order)
        case _:
            usable = [core for cores in allowed for core in cores.cores]
            assignment = _runs(grid, policy, usable, order, edge, stride, any_size=bool(sizes))
    columns, rows = (1 + max(core_range.last[axis] for core_range in allowed) for axis in (0, 1))
    requests = (cores, core_ranges, work_lists, rectangle, stride, tuple(core_offset) != (0, 0), policy != "contiguous")
    values = {size.core_value: size.value for size in sizes}
    work = assignment.cores
    if values:
        work = tuple(dataclasses.replace(core, values=core.values | values) for core in work)
    partition = Partition(
        grid, policy, mode, (columns, rows), work, (*assignment.arguments, *values),
        program.plan.reason(*_SCHEDULE, given=any(requests) or order != "row_major"), order, edge, assignment.form,
        assignment.step, allowed,
    )  # fmt: skip
    program = program.with_plan(partition=partition)
    program = with_local_shards(program) if mode == "local_shard" else program
    return with_partial_sums(program, target)


def choose_shared_inputs(program: TirProgram, target: Target, *, multicast: str | Mapping[str, Topology]) -> TirProgram:
    """Choose the inputs that one core reads for several, and sends to them.

        A[by, k] on the cores of a row, B[k, bx] on those of a column
    ==> choices[multicast]: A along rows, B along columns (nothing shared 88.3 us, A along rows ... 41.9 us)

    With ``auto``, the closed form of the clock predicts the time of each way to share; it has to be 3% shorter than
    without. If no policy or order is asked for, the candidates are contiguous, and rectangular work items. With
    ``all``, each input that several cores need is shared.
    """
    options, before = program.options, program.plan.partition
    assert before is not None, "it is decided"
    if "auto" in (multicast, options.loaded_by, options.partials):
        program = dataclasses.replace(program, works=item_works(program, target))
    free = multicast == "auto" and options.policy is None and options.order is None
    shared = with_shared_inputs(program, target, multicast, lambda: _rectangles(program) if free else [])
    chosen = shared.plan.partition
    return shared if chosen is None or chosen.policy == before.policy else _without_default(shared)


def balance_work_items(program: TirProgram, target: Target) -> TirProgram:
    """Give all cores as much work, where the work items take different times and no policy or order is asked for.

        core (0, 0): items 0 to 2 of a causal mask, 1 + 2 + 3 blocks; core (1, 0): items 3 to 5, 4 + 5 + 6 blocks
    ==> core (0, 0): items 0, 3 and 5, 1 + 4 + 6 blocks; core (1, 0): items 1, 2 and 4, 2 + 3 + 5 blocks

    The lengths of loops, as functions of an item's place in the launch grid, give the cycles of each item. The longest
    one goes first, each to the core with the least work so far. The core with the most work has to be 3% faster than
    with contiguous items. Nothing changes where cores share inputs, hand on partial sums or work on their own shards:
    these need the items where they are.
    """
    plan, options = program.plan, program.options
    partition = plan.partition
    assert partition is not None, "it is decided"
    free = partition.policy == "contiguous" and options.policy is None and options.order is None
    if not free or plan.shared or plan.partials or plan.sizes or partition.mode != "global":
        return program
    if not len(partition.cores) < partition.work_items <= MOST_LISTED_ITEMS:
        return program
    by_place = item_cycles(program, target)
    if by_place is None:
        return program
    grid, cores = partition.grid, [(core.x, core.y) for core in partition.cores]
    cycles = cycles_by_number(grid, by_place)
    if len({cycles(item) for item in range(partition.work_items)}) == 1:
        return program
    lists = balanced_items(grid, cores, partition.order, partition.order_block, cycles)
    before = longest_cycles({(core.x, core.y): partition.items_of(core) for core in partition.cores}, cycles)
    after = longest_cycles(lists, cycles)
    pays = after < before * _WORTH
    times = {"contiguous": before, "balanced": after}
    told = {name: microseconds(time, target) for name, time in times.items()}
    why = note("balanced" if pays else "balancing does not pay", **told)
    candidates = tuple(Candidate(name, predicted_us(time, target)) for name, time in times.items())
    chosen = "balanced" if pays else "contiguous"
    program = program.with_choice(Choice("policy", candidates, chosen, why.text), why)
    if not pays:
        return program
    return _without_default(
        program.with_plan(partition=_reassigned(partition, "balanced", _with_lists(lists, partition.order)))
    )


def _without_default(program: TirProgram) -> TirProgram:
    """The program without the note on the default policy, which is not true any more: another one tells the policy, and
    why."""
    return program.with_plan(notes=tuple(told for told in program.plan.notes if told.kind != "schedule"))


def _rectangles(program: TirProgram) -> list[Partition]:
    """The partition in rectangles, where that is another one than that in runs; the chains of partial sums are those
    of the runs."""
    plan, partition = program.plan, program.plan.partition
    assert partition is not None, "it is decided"
    in_runs = partition.policy == "contiguous" and partition.work_items <= MOST_LISTED_ITEMS
    if not in_runs or plan.partials or plan.sizes or len(partition.core_ranges) != 1 or len(partition.grid) < 2:
        return []
    assignment = _rectangular(
        partition.grid, partition.core_ranges, partition.order, partition.order_block, None, any_size=False
    )
    return [_reassigned(partition, "rectangular", assignment)]


def _reassigned(partition: Partition, policy: Policy, assignment: _Work) -> Partition:
    """The partition with another division of its work items."""
    return dataclasses.replace(
        partition, policy=policy, cores=assignment.cores, arguments=assignment.arguments, form=assignment.form,
        step=assignment.step,
    )  # fmt: skip


# What the options mean


def _policy_and_order(policy: str | None, order: str | None, work_lists: object) -> tuple[Policy, Order, int | None]:
    """The policy, the order, and the edge length of the squares of block_linear."""
    name = parse_policy(policy or "contiguous")
    if work_lists is not None:
        if name not in ("contiguous", "explicit") or order is not None:
            raise UsageError(
                "U008",
                "work lists and another policy or order are given",
                hint="give either work lists, or a policy and an order",
            )
        return "explicit", "row_major", None
    if name == "explicit":
        raise UsageError(
            "U008", "the policy explicit needs work lists", hint="give work_lists={(x, y): [item, ...], ...}"
        )
    if name in ("block_linear", "z_order"):
        if order is not None and parse_order(order)[0] != name:
            raise UsageError(
                "U009",
                f"the policy {name} implies its own order, but the order {order} is given",
                hint=f"omit the order, or use policy='contiguous', order={order!r}",
            )
        order = policy if order is None else order
    return (name, *parse_order(order or "row_major"))


def _check_size(grid: tuple[int, ...], policy: Policy, order: Order, mode: Mode, span: Span | None) -> None:
    """Raises ResourceError for more work items than are verified, or than are listed if the schedule needs that."""
    total, extents = prod(grid), " x ".join(map(str, grid))
    if total > MOST_WORK_ITEMS:
        raise ResourceError(
            "R012",
            f"the launch grid {extents} has {total:,} blocks; at most {MOST_WORK_ITEMS:,} are lowered",
            hint="let each block do more: use larger blocks, or a loop over several blocks inside of T.Kernel",
            span=span,
        )
    spaced = policy in ("contiguous", "strided") and order == "row_major"
    if total > MOST_LISTED_ITEMS and not (spaced and mode == "global"):
        schedule = f"the mode {mode}" if spaced else f"the order {order}"
        if policy not in ("contiguous", "strided"):
            schedule = f"the policy {policy}"
        raise ResourceError(
            "R012",
            f"the launch grid {extents} has {total:,} blocks; with {schedule}, at most "
            f"{MOST_LISTED_ITEMS:,} are lowered",
            hint="use policy='contiguous' or 'strided' in row-major order, with mode='global', or larger blocks",
            span=span,
        )


def _check_cores(work: Mapping[Core, object], ranges: Sequence[CoreRange], target: Target) -> None:
    width, height = target.compute_grid
    allowed = {core for core_range in ranges for core in core_range.cores}
    for x, y in work:
        if not (0 <= x < width and 0 <= y < height):
            raise ResourceError(
                "R005",
                f"core ({x}, {y}) gets work; {target.name} has {width}x{height}",
                hint=f"use cores from (0, 0) to ({width - 1}, {height - 1})",
            )
        if (x, y) not in allowed:
            raise UsageError(
                "U008", f"core ({x}, {y}) gets work but is not among the cores", hint="include it in core_ranges"
            )


def _explicit(grid: tuple[int, ...], work_lists: Mapping[Core, Sequence[WorkItem]]) -> dict[Core, list[int]]:
    """The lists by core, checked to hold each item exactly once."""
    work = {core: [_item(grid, work_item) for work_item in items] for core, items in work_lists.items()}
    total = prod(grid)
    counts = dict.fromkeys(range(total), 0)
    for items in work.values():
        for item in items:
            counts[item] += 1
    faults = {
        "missing": [item for item, count in counts.items() if count == 0],
        "repeated": [item for item, count in counts.items() if count > 1],
    }
    if any(faults.values()):
        told = "; ".join(f"{fault}: {_items_text(grid, items)}" for fault, items in faults.items() if items)
        raise UsageError(
            "U008",
            f"the work lists do not hold each of the {total} work items exactly once; {told}",
            hint="assign each item to exactly one core",
        )
    return {core: items for core, items in work.items() if items}


def _item(grid: tuple[int, ...], work_item: WorkItem) -> int:
    """The number of a work item, given as a number or as a block."""
    if isinstance(work_item, int) and not isinstance(work_item, bool) and 0 <= work_item < prod(grid):
        return work_item
    if (
        isinstance(work_item, list | tuple)
        and len(work_item) == len(grid)
        and all(type(at) is int and 0 <= at < extent for at, extent in zip(work_item, grid, strict=True))
    ):
        return item_number(grid, *work_item)
    raise UsageError(
        "U008",
        f"{shown(work_item)} is not a work item of the grid {' x '.join(map(str, grid))}",
        hint=f"give a number from 0 to {prod(grid) - 1}, or a block {tuple('xyz'[: len(grid)])}".replace("'", ""),
    )


def _items_text(grid: tuple[int, ...], items: list[int]) -> str:
    shown = ", ".join(f"{item} {item_block(grid, item)}" for item in items[:_SHOWN])
    return shown + (f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")


# Division of work


@dataclass(frozen=True)
class _Work:
    """The work of each core, in the form in which it is passed to the cores."""

    cores: tuple[CoreWork, ...]
    form: Literal["range", "rectangle", "list"]
    step: int = 1

    @property
    def arguments(self) -> tuple[str, ...]:
        return (*self.cores[0].values, *(("work_items",) if self.form == "list" else ()))


def _runs(
    grid: tuple[int, ...],
    policy: str,
    cores: list[Core],
    order: str,
    edge: int | None,
    stride: int | None,
    *,
    any_size: bool,
) -> _Work:
    total = prod(grid)
    if stride is not None and not 1 <= stride <= len(cores):
        raise ResourceError(
            "R005",
            f"a stride of {stride} distributes items over {stride} cores; there are {len(cores)}",
            hint=f"use a stride from 1 to {len(cores)}",
        )
    most = stride or len(cores)
    used = cores[: most if any_size else min(total, most)]
    step = len(used) if policy == "strided" else 1
    runs = [(position, 0) for position in range(len(used))] if step > 1 else _even(total, len(used))
    if step > 1:
        runs = [(start, len(range(start, total, step))) for start, _ in runs]
    if order in ("row_major", "column_major"):
        work = tuple(
            CoreWork(x, y, count, {"work_start": start, "work_count": count})
            for (x, y), (start, count) in zip(used, runs, strict=True)
        )
        return _Work(work, "range", step)
    items = in_order(grid, order, edge)
    lists = {core: items[start : start + count * step : step] for core, (start, count) in zip(used, runs, strict=True)}
    return _with_lists(lists, order, any_size=any_size)


def _rectangular(
    grid: tuple[int, ...],
    ranges: tuple[CoreRange, ...],
    order: str,
    edge: int | None,
    size: tuple[int, int] | None,
    *,
    any_size: bool,
) -> _Work:
    if len(ranges) != 1:
        raise UsageError(
            "U007",
            f"the policy rectangular needs one rectangle of cores, {len(ranges)} are given",
            hint="give one core range, or use another policy",
        )
    (left, top), (right, bottom) = ranges[0].first, ranges[0].last
    blocks_x, blocks_y, depth = launch_extents(grid)
    columns = _cut(blocks_x, right - left + 1, size and size[0], "columns", any_size=any_size)
    # A one-dimensional grid has one row of blocks for all sizes, and its loop has no second axis.
    rows = _cut(blocks_y, bottom - top + 1, size and size[1], "rows", any_size=any_size and len(grid) > 1)
    work: list[CoreWork] = []
    for y, (y_start, y_count) in enumerate(rows, top):
        for x, (x_start, x_count) in enumerate(columns, left):
            values = {"x_start": x_start, "x_count": x_count}
            if len(grid) > 1:
                values |= {"y_start": y_start, "y_count": y_count}
            work.append(CoreWork(x, y, x_count * y_count * depth, values))
    if order in ("row_major", "column_major"):
        return _Work(tuple(work), "rectangle")
    lists = {
        (core.x, core.y): in_order(grid, order, edge, rectangle_items(grid, core.values, "row_major")) for core in work
    }
    return _with_lists(lists, order, any_size=any_size)


def _cut(blocks: int, cores: int, size: int | None, unit: str, *, any_size: bool) -> list[tuple[int, int]]:
    """Start and length of each core's part of an axis: `size` blocks each, or nearly equal parts."""
    if size is None:
        return _even(blocks, cores if any_size else min(cores, blocks))
    if size < 1 or -(-blocks // size) > cores:
        raise ResourceError(
            "R005",
            f"rectangles of {size} {unit} of blocks on {cores} cores do not cover {blocks} {unit}",
            hint=f"use at least {-(-blocks // cores)} {unit}, or more cores",
        )
    spans = [(start, min(size, blocks - start)) for start in range(0, blocks, size)]
    return spans + [(0, 0)] * (cores - len(spans)) if any_size else spans


def _by_shard(
    program: TirProgram, grid: tuple[int, ...], match: str | None, order: str, edge: int | None
) -> dict[Core, list[int]]:
    """The items of each core: those whose block of the tensor `match` starts in a shard of that core."""
    sharded = [layout for layout in program.plan.layouts if layout.memory == "l1" and layout.sharding is not None]
    names = [layout.name for layout in sharded]
    if match is None:
        if len(sharded) != 1:
            raise UsageError("U016", 
                f"the policy match_shard needs one tensor; {', '.join(names) or 'none'} "
                f"{'are' if len(sharded) > 1 else 'is'} sharded in L1",
                hint="choose one: match='" + (names or ["A"])[0] + "'"
                + ("" if sharded else ", layouts={'A': {'shard': 'height'}}"),
            )  # fmt: skip
        match = names[0]
    if match not in names:
        raise UsageError(
            "U016",
            f"the policy match_shard needs {match} sharded in L1; {', '.join(names) or 'no tensor'} is",
            hint=f"layouts={{{match!r}: {{'shard': 'height'}}}}",
        )
    layout = program.plan.layout(match)
    sharding = layout.sharding
    assert sharding is not None, "it is among those that have one"
    loops = grid_loops(program.kernel)
    copies = [copy for copy in tensor_copies(loops) if copy.tensor == match]
    if not copies:
        raise Unsupported(
            "L014",
            f"the blocks of {match} cannot be assigned: their positions depend on run-time values",
            hint="match another tensor",
            span=span_of(loops[-1]),
        )
    lists: dict[Core, list[int]] = {core: [] for core in sharding.cores}
    for item in in_order(grid, order, edge):
        start = next(copies[0].starts(item_block(grid, item)))
        lists[sharding.cores[shard_of(sharding, tile_of(layout, start))]].append(item)
    return {core: items for core, items in lists.items() if items}


def _with_lists(lists: Mapping[Core, list[int]], order: str, *, any_size: bool = False) -> _Work:
    """The work as ranges if the lists have a common step, otherwise as lists. Column-major ranges count differently."""
    step = common_step(lists.values())
    if step is not None and order != "column_major" and not any_size:
        work = tuple(
            CoreWork(x, y, len(items), {"work_start": items[0], "work_count": len(items)})
            for (x, y), items in lists.items()
        )
        return _Work(work, "range", step)
    work = tuple(
        CoreWork(x, y, len(items), {"work_count": len(items)}, tuple(items)) for (x, y), items in lists.items()
    )
    return _Work(work, "list")


def _even(total: int, count: int) -> list[tuple[int, int]]:
    """Start and length of `count` runs of nearly equal length."""
    base, more = divmod(total, count)
    lengths = [base + (index < more) for index in range(count)]
    return [(sum(lengths[:index]), length) for index, length in enumerate(lengths)]


# Shards as circular buffers


def with_local_shards(program: TirProgram) -> TirProgram:
    """The program with circular buffers that alias shards in L1, for the partition of the plan.

    A shard can be a circular buffer if exactly one copy moves the tensor, and each core moves the tiles of its own
    shard in order, each once. Raises UsageError, with the reason for each tensor, if this holds for no tensor.
    """
    plan, options = program.plan, program.options
    partition, staging = plan.partition, program.staging
    assert partition is not None, "it is decided"
    assert staging is not None, "A2 decides it"
    copies = tensor_copies(grid_loops(program.kernel))
    homes = {key[0]: name for mapping in (staging.reads, staging.writes) for key, name in mapping.items()}
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    refused: list[str] = []
    # Copies under a condition, or at positions known only at run time, as well.
    moves = Counter(tensor for statement in walk(program.kernel.body) for tensor in tensors_moved(statement))
    for layout in plan.layouts:
        if layout.memory != "l1" or layout.sharding is None:
            continue
        own_copies = [copy for copy in copies if copy.tensor == layout.name]
        buffer = buffers.get(homes.get(own_copies[0].statement, "")) if len(own_copies) == 1 else None
        reason = _no_alias(partition, layout, own_copies, buffer, moves[layout.name])
        if reason is not None or buffer is None:
            refused.append(f"{layout.name}: {reason}")
            continue
        stages = shard_tiles(layout) // buffer.block_pages
        buffers[buffer.name] = dataclasses.replace(
            buffer, stages=stages, shard_of=layout.name, reason=f"the shard of {layout.name} on each core"
        )
    if not any(buffer.shard_of for buffer in buffers.values()):
        raise UsageError(
            "U016",
            "no shard can be a circular buffer: " + ("; ".join(refused) or "no tensor is sharded in L1"),
            hint="shard a tensor in L1 by the blocks that a core moves and use policy='match_shard'; or mode='global'",
        )
    depths = {"stages": options.stages, "cb_depth": options.cb_depth, "chunk_k_tiles": options.chunk_k_tiles}
    depths["qk_chunk_tiles"] = options.qk_chunk_tiles
    asked = [name for name, value in depths.items() if value is not None]
    notes = [
        note(
            "shard is the buffer",
            buffer=buffer.name,
            depth=buffer.stages,
            tensor=buffer.shard_of,
            options=", ".join(asked),
        )
        for buffer in buffers.values()
        if buffer.shard_of and asked
    ]
    return program.with_plan(buffers=tuple(buffers.values()), notes=(*plan.notes, *notes))


def _no_alias(
    partition: Partition, layout: TensorLayout, copies: list[TensorCopy], buffer: CircularBuffer | None, moves: int
) -> str | None:
    """Why the shards of a tensor, which so many statements move, cannot be a circular buffer; None if they can."""
    if moves != 1:
        return f"{moves} copies move it, instead of one"
    if not copies or buffer is None:
        return "it is moved under a condition, or where is known only when the kernel runs"
    copy = copies[0]
    if buffer.shard_of:
        return f"{buffer.name} is already the shard of {buffer.shard_of}"
    if buffer.data_format != layout.data_format:
        return f"{buffer.name} holds {buffer.data_format}, the tensor {layout.data_format}"
    if not whole_buffer(copy) or shard_tiles(layout) % buffer.block_pages:
        return f"its shards of {shard_tiles(layout)} tiles are not whole blocks of {buffer.block_pages}"
    if buffer.tile_order == "column_major" and copy.extents[-1] != TILE_COLUMNS:
        return f"{buffer.name} holds its tiles column by column"
    for core in partition.cores:
        blocks = [item_block(partition.grid, item) for item in partition.items_of(core)]
        reason = moves_own_shard(copy, layout, (core.x, core.y), blocks, buffer.tile_order == "column_major")
        if reason is not None:
            return reason
    return None


PARTS = (
    Pass(
        "B1.1",
        "partition",
        assign_work_items,
        reads=("partials", "stages", "cb_depth", "chunk_k_tiles", "qk_chunk_tiles", "math_fidelity"),
    ),
    Pass(
        "B1.2",
        "partition",
        choose_shared_inputs,
        reads=("loaded_by", "partials", "policy", "order", "math_fidelity", "notes"),
    ),
    Pass("B1.3", "partition", balance_work_items, reads=("policy", "order", "math_fidelity", "notes")),
)
