"""Values that stay in DST for a whole loop."""

from __future__ import annotations

from tvm import tirx

from ttexplore.analysis.dst_blocks import Index, plus
from ttexplore.ir.arithmetic.bounds import is_marked_empty
from ttexplore.ir.build import loop, op, variable, with_body
from ttexplore.ir.rewrite import Firings, inherit_places
from ttexplore.passes.insert_dst_management.groups import SequencePart
from ttexplore.passes.insert_dst_management.spills import RELOAD, SECTION, SLOTS, SPILL, Spill
from ttexplore.passes.insert_dst_management.steps import StepReader, tiles_of


def resident_stretches(
    body: list[tirx.Stmt], reader: StepReader, spilled: dict[tirx.Buffer, Spill], dst: tirx.Buffer, capacity: int,
    firings: Firings,
) -> list[SequencePart]:  # fmt: skip
    """`body` with one section, a list, for every stretch around a loop that can keep all its values in DST."""
    if not any(_is_nest(statement, reader) for statement in body):
        return [*body]
    values = [reader.values(statement) for statement in body]
    spans: dict[tirx.Buffer, tuple[int, int]] = {}
    for index, used in enumerate(values):
        for value in used:
            spans[value] = (spans.get(value, (index, index))[0], index)
    stretches: list[SequencePart] = []
    position = 0
    while position < len(body):
        end = _stretch(values, spans, position, spilled)
        section = _whole_stretch(body[position:end], reader, dst, capacity, firings) if end > position + 1 else None
        if section is None:
            stretches.append(body[position])
            position += 1
        else:
            stretches.append(section)
            position = end
    return stretches


def _stretch(
    values: list[list[tirx.Buffer]], spans: dict[tirx.Buffer, tuple[int, int]], start: int,
    spilled: dict[tirx.Buffer, Spill],
) -> int:  # fmt: skip
    """The end of the stretch from `start` whose values are used only within it; `values` are those of each statement,
    `spans` the first and the last statement that use each value. Returns `start` if there is no such stretch."""
    end, position = start + 1, start
    while position < end:
        for value in values[position]:
            first, last = spans[value]
            if value in spilled or first < start:
                return start
            end = max(end, last + 1)
        position += 1
    return end


def _whole_stretch(
    body: list[tirx.Stmt], reader: StepReader, dst: tirx.Buffer, capacity: int, firings: Firings
) -> list[tirx.Stmt] | None:
    nests = [statement for statement in body if _is_nest(statement, reader)]
    if not nests or not all(_turns_alike(statement, reader) for statement in nests):
        return None
    if any(_has_own_sections(statement, reader) for statement in body):
        return None
    packs = [i for i, statement in enumerate(body) if _is_pack(statement, reader)]
    math = [i for i, statement in enumerate(body) if reader.has_values(statement) and not _is_pack(statement, reader)]
    if not packs or (math and max(math) > min(packs)):
        return None
    zeroed = _needless_fills(body, reader)
    slots = _slots([s for i, s in enumerate(body) if i not in zeroed], reader, capacity)
    if slots is None:
        return None
    contents: list[tirx.Stmt] = [op("tile_regs_acquire")]
    for index, statement in enumerate(body):
        if index == packs[0]:
            contents += [op("tile_regs_commit"), op("tile_regs_wait")]
        if index not in zeroed:
            contents.append(_placed(statement, reader, slots, dst, firings))
        if index == packs[-1]:
            contents.append(op("tile_regs_release"))
    section = firings.made(SECTION, body[0], contents)
    for index in zeroed:
        inherit_places(body[index], contents[:1])
    return section


def can_stay(statement: tirx.Stmt, reader: StepReader, capacity: int) -> bool:
    """Whether all values of a loop fit in DST together and nothing in the loop is packed."""
    return (
        _is_nest(statement, reader) and _turns_alike(statement, reader) and not _has_own_sections(statement, reader)
        and sum(tiles_of(value) for value in reader.values(statement)) <= capacity
    )  # fmt: skip


def resident_loop(
    statement: tirx.For, reader: StepReader, spilled: dict[tirx.Buffer, Spill], live: frozenset[tirx.Buffer],
    dst: tirx.Buffer, firings: Firings,
) -> list[tirx.Stmt]:  # fmt: skip
    """One section around a loop: the values that it reads are reloaded before it, the `live` ones that it changes
    spilled after it."""
    touches = reader.seen(statement).touches
    values = [*touches]
    slots = {value: sum(tiles_of(earlier) for earlier in values[:i]) for i, value in enumerate(values)}
    section: list[tirx.Stmt] = [op("tile_regs_acquire", span=statement.span)]
    for value, touch in touches.items():
        spill = spilled.get(value)
        enters = touch.first == "read" or (touch.first == "may_write" and value in live)
        if spill is None or not enters:
            continue
        if spill.fresh is not None and spill.fresh.loop_var.same_as(statement.loop_var):
            # DST is zero when it is acquired.
            inherit_places(spill.fresh.fill, section[:1])
            continue
        t, tiles = variable("t"), tiles_of(value)
        copied = op("copy_tile", spill.cb, spill.shape.place_in_parts(t), dst, plus(t, slots[value]))
        # What is only read, and read again later, stays in its buffer.
        stays = spill.waited or (value in live and not touch.changes)
        section += firings.made(RELOAD, statement, [
            *([] if spill.waited else [op("cb_wait_front", spill.cb, tiles)]), loop(t, tiles, [copied]),
            *([] if stays else [op("cb_pop_front", spill.cb, tiles)]),
        ])  # fmt: skip
    section.append(_placed(statement, reader, slots, dst, firings))
    section.append(op("tile_regs_commit"))
    leaving = [value for value in values if value in live and touches[value].changes]
    reserves = [op("cb_reserve_back", spilled[value].cb, tiles_of(value)) for value in leaving]
    section += firings.made(SPILL, statement, reserves)
    section.append(op("tile_regs_wait"))
    for value in leaving:
        t, spill = variable("t"), spilled[value]
        packed = op("pack_tile", dst, plus(t, slots[value]), spill.cb, spill.shape.place_in_parts(t))
        section += firings.made(SPILL, statement, [loop(t, tiles_of(value), [packed])])
    section.append(op("tile_regs_release"))
    section += firings.made(
        SPILL, statement, [op("cb_push_back", spilled[value].cb, tiles_of(value)) for value in leaving]
    )
    return firings.made(SECTION, statement, section)


def _has_own_sections(statement: tirx.Stmt, reader: StepReader) -> bool:
    """Whether an operation in a statement acquires DST itself, so that no value stays in DST during it."""
    return any(operation.op.engine == "block" for operation in reader.seen(statement).operations)


def _is_nest(statement: tirx.Stmt, reader: StepReader) -> bool:
    """Whether a statement is a loop around several operations on DST, or around loops of them."""
    summary = reader.seen(statement)
    return type(statement) is tirx.For and summary.step is None and bool(summary.touches)


def _turns_alike(statement: tirx.Stmt, reader: StepReader) -> bool:
    """Whether all iterations of a loop can run in the same section: it packs nothing, and no operation requires an
    unused slot."""
    return all(
        not operation.op.packs and not (operation.op.accumulates and operand.access == "write")
        for operation in reader.seen(statement).operations
        for operand in operation.operands
    )


def _is_pack(statement: tirx.Stmt, reader: StepReader) -> bool:
    step = reader.step(statement)
    return step is not None and step.packs


def _needless_fills(body: list[tirx.Stmt], reader: StepReader) -> set[int]:
    """The zero fills before products that accumulate: DST is zero when it is acquired."""
    needless: set[int] = set()
    waiting: dict[tirx.Buffer, int] = {}
    used: set[tirx.Buffer] = set()
    for position, statement in enumerate(body):
        step = reader.step(statement)
        if step is not None and step.fills_with_zero and step.target not in used:
            waiting[step.target] = position
            used.add(step.target)
            continue
        for operation in reader.seen(statement).operations:
            for operand in operation.operands:
                filled = waiting.pop(operand.value, None)
                if filled is not None and operation.op.name == "matmul_block" and not _may_be_empty(statement, reader):
                    needless.add(filled)
                used.add(operand.value)
    return needless


def _may_be_empty(statement: tirx.Stmt, reader: StepReader) -> bool:
    """Whether a loop, or one in it, may run zero iterations."""
    if type(statement) is not tirx.For:
        return False
    return is_marked_empty(statement) or any(_may_be_empty(inner, reader) for inner in reader.inside(statement))


def _slots(body: list[tirx.Stmt], reader: StepReader, capacity: int) -> dict[tirx.Buffer, int] | None:
    """The first tile of each value; values that are never alive together share tiles. None if they do not fit.

    A value that an operation adds to gets tiles that nothing used before.
    """
    spans: dict[tirx.Buffer, list[int]] = {}
    for position, statement in enumerate(body):
        for operation in reader.seen(statement).operations:
            for operand in operation.operands:
                span = spans.setdefault(operand.value, [position, position])
                span[1] = len(body) if operation.op.name == "pack_tile" else max(span[1], position)
                if span[0] == position and operation.op.accumulates:
                    span[0] = -1
    placed: dict[tirx.Buffer, int] = {}
    # The tiles of values that may still be alive, and the end of each.
    busy: list[tuple[int, int, int]] = []
    for value, (start, end) in sorted(spans.items(), key=lambda item: item[1][0]):
        tiles = tiles_of(value)
        busy = sorted(occupied for occupied in busy if occupied[2] >= start)
        first = 0
        for low, high, _ in busy:
            if first + tiles <= low:
                break
            first = max(first, high)
        if first + tiles > capacity:
            return None
        placed[value] = first
        busy.append((first, first + tiles, end))
    return placed


def _placed(
    statement: tirx.Stmt, reader: StepReader, slots: dict[tirx.Buffer, int], dst: tirx.Buffer, firings: Firings
) -> tirx.Stmt:
    """The statement with each value replaced by its slots."""
    summary = reader.seen(statement)
    if not summary.touches:
        return statement
    if type(statement) is tirx.For:
        nest = with_body(statement, [_placed(inner, reader, slots, dst, firings) for inner in summary.inside])
        return firings.made(SLOTS, statement, [nest])[0]
    (operation,) = summary.operations
    values: list[Index] = list(operation.arguments)
    for operand in operation.operands:
        values[operand.position], values[operand.position + 1] = dst, plus(operand.index, slots[operand.value])
    return firings.made(SLOTS, statement, [op(operation.op.name, *values)])[0]
