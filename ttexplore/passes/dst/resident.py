"""Values that stay in DST through a whole loop."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.ir.bounds import is_marked_empty
from ttexplore.ir.build import arguments, loop, op, op_name, statements, variable, with_body
from ttexplore.ir.rewrite import stamp, walk
from ttexplore.ops import OPS
from ttexplore.passes.dst.blocks import plus
from ttexplore.passes.dst.spills import Spill
from ttexplore.passes.dst.steps import as_step, dst_operands, has_values, touched, values_in


def resident_stretches(body: list[Any], spilled: dict[Any, Spill], dst: Any, capacity: int) -> list[Any]:
    """`body` with every stretch around a loop that can keep all its values in DST made into one section, a list."""
    if not any(_is_nest(statement) for statement in body):
        return body
    values = [values_in(statement) for statement in body]
    spans: dict[Any, tuple[int, int]] = {}
    for place, own in enumerate(values):
        for value in own:
            spans[value] = (spans.get(value, (place, place))[0], place)
    made: list[Any] = []
    position = 0
    while position < len(body):
        end = _stretch(values, spans, position, spilled)
        section = _whole_stretch(body[position:end], dst, capacity) if end > position + 1 else None
        if section is None:
            made.append(body[position])
            position += 1
        else:
            made.append(section)
            position = end
    return made


def _stretch(values: list[list[Any]], spans: dict[Any, tuple[int, int]], start: int, spilled: dict[Any, Spill]) -> int:
    """The end of the stretch from `start` on in which values are alive that are touched in it only; `values` are those
    of each statement, `spans` the first and the last statement that touch each."""
    end, position = start + 1, start
    while position < end:
        for value in values[position]:
            first, last = spans[value]
            if value in spilled or first < start:
                return start
            end = max(end, last + 1)
        position += 1
    return end


def _whole_stretch(body: list[Any], dst: Any, capacity: int) -> list[Any] | None:
    nests = [one for one in body if _is_nest(one)]
    if not nests or not all(_turns_alike(one) for one in nests):
        return None
    if any(has_own_sections(one) for one in body):
        return None
    packs = [i for i, one in enumerate(body) if _is_pack(one)]
    math = [i for i, one in enumerate(body) if has_values(one) and not _is_pack(one)]
    if not packs or (math and max(math) > min(packs)):
        return None
    zeroed = _needless_fills(body)
    slots = _slots([s for i, s in enumerate(body) if i not in zeroed], capacity)
    if slots is None:
        return None
    made: list[Any] = [op("tile_regs_acquire")]
    for index, statement in enumerate(body):
        if index == packs[0]:
            made += [op("tile_regs_commit"), op("tile_regs_wait")]
        if index not in zeroed:
            made.append(_placed(statement, slots, dst))
        if index == packs[-1]:
            made.append(op("tile_regs_release"))
    for one in made:
        stamp(one, body[0].span)
    return made


def can_stay(statement: Any, capacity: int) -> bool:
    """Whether the values of a loop fit DST together, and nothing in it is packed."""
    values = values_in(statement)
    return (
        _is_nest(statement) and _turns_alike(statement) and not has_own_sections(statement)
        and sum(_tiles(value) for value in values) <= capacity
    )  # fmt: skip


def resident_loop(statement: Any, spilled: dict[Any, Spill], live: frozenset[Any], dst: Any) -> list[Any]:
    """One section around a loop: what it reads comes from buffers before it, what is `live` goes there after it."""
    touches = touched([statement])
    values = [*touches]
    slots = {value: sum(_tiles(other) for other in values[:i]) for i, value in enumerate(values)}
    made: list[Any] = [op("tile_regs_acquire")]
    for value, touch in touches.items():
        spill = spilled.get(value)
        enters = touch.first == "read" or (touch.first == "may_write" and value in live)
        if spill is None or not enters:
            continue
        if spill.fresh is not None and spill.fresh.same_as(statement.loop_var):
            continue
        t, tiles = variable("t"), _tiles(value)
        copied = op("copy_tile", spill.cb, spill.shape.place_in_parts(t), dst, plus(t, slots[value]))
        made += [op("cb_wait_front", spill.cb, tiles), loop(t, tiles, [copied]), op("cb_pop_front", spill.cb, tiles)]
    made.append(_placed(statement, slots, dst))
    made.append(op("tile_regs_commit"))
    leaving = [value for value in values if value in live]
    made += [op("cb_reserve_back", spilled[value].cb, _tiles(value)) for value in leaving]
    made.append(op("tile_regs_wait"))
    for value in leaving:
        t, spill = variable("t"), spilled[value]
        packed = op("pack_tile", dst, plus(t, slots[value]), spill.cb, spill.shape.place_in_parts(t))
        made.append(loop(t, _tiles(value), [packed]))
    made.append(op("tile_regs_release"))
    made += [op("cb_push_back", spilled[value].cb, _tiles(value)) for value in leaving]
    for one in made:
        stamp(one, statement.span)
    return made


def has_own_sections(statement: Any) -> bool:
    """Whether something in a statement takes DST for itself: nothing stays there through it."""
    return any((op := OPS.get(op_name(inner))) is not None and op.engine == "block" for inner in walk(statement))


def _is_nest(statement: Any) -> bool:
    """Whether a statement is a loop with several operations on DST in it, or loops of such."""
    return isinstance(statement, tirx.For) and as_step(statement) is None and has_values(statement)


def _turns_alike(statement: Any) -> bool:
    """Whether each turn of a loop can run in the same section: it packs nothing, and no operation counts on a slot that
    nothing has used."""
    return all(
        not OPS[op_name(inner)].packs and not (OPS[op_name(inner)].accumulates and operand.access == "write")
        for inner in walk(statement)
        for operand in dst_operands(inner)
    )


def _is_pack(statement: Any) -> bool:
    step = as_step(statement)
    return step is not None and step.packs


def _needless_fills(body: list[Any]) -> set[int]:
    """The fills with zero before products that add: DST is zero when it is acquired."""
    found: set[int] = set()
    waiting: dict[Any, int] = {}
    seen: set[Any] = set()
    for position, statement in enumerate(body):
        step = as_step(statement)
        if step is not None and step.fills_with_zero and step.target not in seen:
            waiting[step.target] = position
            seen.add(step.target)
            continue
        for inner in walk(statement):
            for operand in dst_operands(inner):
                filled = waiting.pop(operand.value, None)
                if filled is not None and op_name(inner) == "tt.matmul_block" and not _may_be_empty(statement):
                    found.add(filled)
                seen.add(operand.value)
    return found


def _may_be_empty(statement: Any) -> bool:
    """Whether no turn may come of a loop, or of one in it."""
    return any(isinstance(inner, tirx.For) and is_marked_empty(inner) for inner in walk(statement))


def _slots(body: list[Any], capacity: int) -> dict[Any, int] | None:
    """The first tile of each value; values that are never alive together share tiles. None where they do not fit.

    A value that an operation adds to gets tiles that nothing else uses before.
    """
    spans: dict[Any, list[int]] = {}
    for position, statement in enumerate(body):
        for inner in walk(statement):
            for operand in dst_operands(inner):
                span = spans.setdefault(operand.value, [position, position])
                span[1] = len(body) if op_name(inner) == "tt.pack_tile" else max(span[1], position)
                if span[0] == position and _adds(inner):
                    span[0] = -1
    placed: dict[Any, int] = {}
    # The tiles of values that may still be alive, and the end of each.
    busy: list[tuple[int, int, int]] = []
    for value, (start, end) in sorted(spans.items(), key=lambda item: item[1][0]):
        tiles = _tiles(value)
        busy = sorted(one for one in busy if one[2] >= start)
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


def _adds(call: Any) -> bool:
    return OPS[op_name(call)].accumulates


def _tiles(value: Any) -> int:
    return int(value.ty.shape[0])


def _placed(statement: Any, slots: dict[Any, int], dst: Any) -> Any:
    """The statement with each value replaced by its slots."""
    if isinstance(statement, tirx.For):
        return with_body(statement, [_placed(inner, slots, dst) for inner in statements(statement.body)])
    found = dst_operands(statement)
    if not found:
        return statement
    values = arguments(statement)
    for operand in found:
        values[operand.position], values[operand.position + 1] = dst, plus(operand.index, slots[operand.value])
    return op(op_name(statement)[3:], *values, span=statement.span)
