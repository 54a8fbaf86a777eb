"""Which kernel loads each input: the reader over NoC 0, or the writer over NoC 1 before it waits for results.

The two kernels then load at the same time, as in the products that the SDK writes by hand. Each runs what the kernel
says in its order, so that none waits for what comes later: a block is loaded before the results that need it are
stored.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping

from ttexplore.analysis.tile_graph import tile_graph
from ttexplore.clock.closed_form import microseconds, predicted_cycles, predicted_moves, predicted_us, roles_of
from ttexplore.errors import UsageError, unknown
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import buffer_of, op_name, operands
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.noc_links import busiest_cycles
from ttexplore.notes import Note, note
from ttexplore.ops import FORMS
from ttexplore.plan import Candidate, Choice, Loader, Plan, TensorLayout
from ttexplore.target import Target

# What the writer has to save by the prediction to load anything: 6%, or less where it is many cycles. What the
# prediction leaves out, mostly latencies, does not grow with the time.
_WORTH, _WORTH_IF_LONG, _LONG_CYCLES = 0.06, 0.015, 1000


def with_loaders(program: TirProgram, target: Target, request: str | Mapping[str, Loader]) -> TirProgram:
    """The program whose plan says which kernel loads each input.

    `request` is ``reader`` (it loads all), ``auto`` (the writer loads the inputs for which the shortest time is
    predicted, if it is shorter than without), ``both`` (the writer loads those that make the busier of the two kernels
    move the fewest bytes per work item), or the kernel of single inputs, by name. Raises UsageError for an input that
    the writer cannot load.
    """
    plan = program.plan
    inputs = [layout.name for layout in plan.layouts]
    asked = {} if isinstance(request, str) else dict(request)
    for name in asked:
        if name not in inputs:
            raise unknown("tensor", name, inputs)
    if request == "reader" or not request or (request == "auto" and not _in_loops(program)):
        return program
    filled = _filled(program)
    reasons = {layout.name: _why_not(layout, plan, filled) for layout in plan.layouts}
    for name, loader in asked.items():
        if loader == "writer" and reasons[name]:
            raise UsageError(
                "U024", f"the writer cannot load {name}: {reasons[name]}",
                hint="loaded_by='both' gives it what it can load, and the plan's notes say why not the others",
            )  # fmt: skip
    able = [layout.name for layout in plan.layouts if layout.role == "input" and not reasons[layout.name]]
    notes: tuple[Note, ...] = ()
    match request:
        case "auto":
            chosen, choice = _fastest(program, target, able)
            program = program if choice is None else program.with_choice(*choice)
        case "both":
            chosen = _balanced(plan, able)
            read = set[str]().union(*filled.values())
            notes = tuple(
                note("loaded by the reader", tensor=layout.name,
                     reason=reasons[layout.name] or "with it, the writer would move more bytes")
                for layout in plan.layouts if layout.role == "input" and layout.name in read - chosen
            )  # fmt: skip
        case _:
            chosen = {name for name, loader in asked.items() if loader == "writer"}
    notes = (*program.plan.notes, *notes)
    if not chosen:
        return program.with_plan(notes=notes)
    buffers = tuple(
        dataclasses.replace(buffer, producer="writer") if chosen & filled.get(buffer.name, set()) else buffer
        for buffer in plan.buffers
    )
    return program.with_plan(buffers=buffers, graph=tile_graph(program, buffers), notes=notes)


def _in_loops(program: TirProgram) -> set[str]:
    """The inputs that loops load before anything is stored."""
    if program.works is None:
        return set()
    # Those of any math fidelity.
    loads = next(iter(program.works.values())).loads
    unfit = {load.tensor for load in loads if load.turns < 2 or not load.comes_first}
    return {load.tensor for load in loads} - unfit


def _fastest(program: TirProgram, target: Target, able: list[str]) -> tuple[set[str], tuple[Choice, Note] | None]:
    """Of the inputs that loops load before anything is stored, those with which the shortest time is predicted if the
    writer loads them, not all of a loop; none unless that pays. With what was compared, if there is a choice.

    Of a single block, only the latency would be saved, which other transfers hide.
    """
    # Passes do not see the recorded options; of these, the ways of packets depend on the shards that work follows.
    plan, work = program.plan.replace(options={"match": program.options.match}), program.work
    assert plan.partition is not None, "B1 decides it"
    assert work is not None, "the time is predicted from it"
    able = [name for name in able if name in _in_loops(program)]
    if not able:
        return set(), None
    loops = [
        {load.tensor for load in work.loads if load.loops == loops} for loops in {load.loops for load in work.loads}
    ]
    items = {(core.x, core.y): core.items for core in plan.partition.cores}
    shared = {shared_input.tensor: roles_of(shared_input.multicasts) for shared_input in plan.shared}

    def by_links(*by_writer: str) -> int:
        return target.costs.launch_cycles + busiest_cycles(predicted_moves(work, plan, by_writer), plan, target)

    alone = max(predicted_cycles(work, items, target, shared), float(by_links()))
    most = alone - max(alone * _WORTH_IF_LONG, min(alone * _WORTH, _LONG_CYCLES))
    if predicted_cycles(work.without_reading, items, target, {}) > most:
        # Reading takes no longer than what has to be done anyway.
        return set(), None
    best, busiest, chosen = alone, 0, list[str]()
    times: dict[tuple[str, ...], float] = {(): alone}
    for _ in able:
        before = chosen
        tried = {name: float(round(predicted_cycles(work, items, target, shared, [*before, name])))
                 for name in reversed(able)
                 if name not in before and not any(together <= {*before, name} for together in loops)}  # fmt: skip
        for name in sorted(tried, key=lambda candidate: tried[candidate]):
            if tried[name] > best:
                break
            # Of equal ones, that with the less busy links, and then the last.
            links = by_links(*before, name)
            times[*before, name] = cycles = max(tried[name], float(links))
            if (cycles, links) < (best, busiest):
                best, busiest, chosen = cycles, links, [*before, name]
        if chosen is before:
            break
    if not chosen:
        return set(), None

    def told(names: Collection[str]) -> str:
        return " and ".join(name for name in able if name in names)

    pays = best <= most
    why = note(
        "loaded by the writer" if pays else "loading does not pay", tensors=told(chosen),
        both=microseconds(best, target), alone=microseconds(alone, target),
    )  # fmt: skip
    name = {names: f"{told(names)} by the writer" if names else "all by the reader" for names in times}
    candidates = tuple(Candidate(name[names], predicted_us(cycles, target)) for names, cycles in times.items())
    by_writer = tuple(chosen) if pays else ()
    return {*by_writer}, (Choice("loaded_by", candidates, name[by_writer], why.text), why)


def _filled(program: TirProgram) -> dict[str, set[str]]:
    """What fills each circular buffer that a kernel moves blocks to: the names of tensors, of a buffer whose elements
    are rearranged, or of the operation that writes numbers."""
    sources_of: dict[str, set[str]] = {}
    for statement in walk(program.kernel.body):
        form = FORMS.get(op_name(statement))
        if form is None or form.op.role == "compute":
            continue
        operand_values = operands(statement)
        if any(operand.name == "cb" and operand.access == "write" for operand in form.operands):
            source = operand_values.get("source")
            name = str(source.name) if source is not None and is_buffer(source) else op_name(statement)
            sources_of.setdefault(str(buffer_of(operand_values["cb"]).name), set()).add(name)
    return sources_of


def _why_not(layout: TensorLayout, plan: Plan, filled: Mapping[str, set[str]]) -> str:
    """Why the writer cannot load a tensor; empty if it can."""
    layout_buffers = [plan.buffer(name) for name, sources in filled.items() if layout.name in sources]
    if layout.role != "input":
        return "the kernel stores to it, so the writer moves it already"
    if not layout_buffers:
        return "no block of it is loaded"
    for buffer in layout_buffers:
        if buffer.shard_of:
            return f"its shards are {buffer.name} itself, and nothing moves"
        if buffer.consumer != "compute":
            return f"{buffer.name} goes straight to the writer, which waits for what the reader loads"
    return ""


def _balanced(plan: Plan, able: list[str]) -> set[str]:
    """Of the inputs that the writer can load, those with which the busier of the two kernels moves the fewest bytes per
    work item; of equal choices, the one with the fewest inputs, and then the last ones."""
    assert plan.graph is not None, "C3 decides it"
    loaded = {name: 0 for name in able}
    moved = {"reader": 0, "writer": 0}
    sizes = {accessor.tensor: accessor.page_bytes for accessor in plan.accessors}
    for edge in plan.graph.edges:
        way = {edge.source, edge.target} & moved.keys()
        tensor = edge.source if edge.source in sizes else edge.target
        if not way or tensor not in sizes:
            continue
        count = (edge.tiles_per_item or 0) * sizes[tensor]
        moved[way.pop()] += count
        if tensor in loaded:
            loaded[tensor] += count

    def busier(chosen: tuple[str, ...]) -> int:
        shifted = sum(loaded[name] for name in chosen)
        return max(moved["reader"] - shifted, moved["writer"] + shifted)

    able = able[-_MOST_COMPARED:]
    ways = [
        way for number in range(len(able) + 1) for way in itertools.combinations(reversed(able), number)
    ]  # fmt: skip
    return set(min(ways, key=busier))


# Kernels have few inputs; of more than these, the others stay with the reader.
_MOST_COMPARED = 10
