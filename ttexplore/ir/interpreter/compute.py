"""Operations of the compute kernel: what each means is the table's, where its tiles come from and go to stands here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from ttexplore.ir.interpreter.arrays import held
from ttexplore.ir.interpreter.engines import Part
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ops import OPS
from ttexplore.ops.matmul import MATMUL_BLOCK
from ttexplore.ops.op import Form, Op, Operand, Tile
from ttexplore.ops.reduce import REDUCE_BLOCK_MAX_ROW

# The arguments of an operation: names of buffers, and numbers.
_Values = tuple[Any, ...]
# What a step of an operation does with its arguments: it adds to what the meaning takes.
_Step = Callable[[Core, _Values, list[object]], None]


def computing(form: Form) -> Callable[..., None]:
    """An operation of the FPU, the SFPU or the packer on tiles: it reads what its operands say, in their order."""
    op, check = form.op, _checking(form)
    positions = {operand.name: at for operand, at in form.places}
    steps = [step for operand, at in form.places if (step := _step(op, operand, at, positions)) is not None]
    (out,) = (operand for operand in op.operands if operand.access in ("write", "update"))
    at = positions[out.name]
    index_at = at + 1 if out.kind == "dst" else next(p for operand, p in form.places if operand.of == out.name)
    meaning, packs = op.meaning, out.kind == "cb"
    # What adds to a tile is told apart from it: the tile is not one of its operands.
    adds = op.accumulates and out.access == "update"
    assert meaning is not None

    def compute(core: Core, *values: Any) -> None:
        check(core, values)
        operands: list[object] = []
        for step in steps:
            step(core, values, operands)
        result = meaning(*operands)
        if packs:
            _pack(core, op, values[at], values[index_at], result)
        elif adds:
            core.dst.add(values[at], values[index_at], result[None])
        else:
            core.dst.write(op, values[at], values[index_at], result)

    return compute


def _step(op: Op, operand: Operand, at: int, positions: dict[str, int]) -> _Step | None:
    def tile(core: Core, values: _Values, operands: list[object]) -> None:
        cb = values[positions[operand.of]]
        operands.append(core.dst.as_taken(op, core.tiles[cb].get(values[at]), cb))

    def in_dst(core: Core, values: _Values, operands: list[object]) -> None:
        core.dst.check_slot(op, values[at], values[at + 1])
        if operand.access != "write" and not op.accumulates:
            operands.append(core.dst.read(op, values[at], values[at + 1]))

    def number(core: Core, values: _Values, operands: list[object]) -> None:
        operands.append(int(values[at]))

    def real(core: Core, values: _Values, operands: list[object]) -> None:
        operands.append(np.float32(values[at]))

    match operand.kind:
        case "cb":
            return None
        case "tile":
            written = next(candidate for candidate in op.operands if candidate.name == operand.of).access == "write"
            return None if written else tile
        case "dst":
            return in_dst
        case "float":
            return real
        case "int" | "flag":
            return number
        case "slot" | "tensor" | "page" | "condition" | "semaphore":
            raise AssertionError(f"{op.name} computes, and has a {operand.kind}")
        case _:
            assert_never(operand.kind)


def _pack(core: Core, op: Op, cb: str, index: int, result: Tile) -> None:
    dtype = core.dtypes[cb]
    if str(result.dtype) != held(dtype):
        raise core.where.fault(
            "V045", f"{op.name} packs {result.dtype} to {cb}, which holds {held(dtype)}", "call a typecast before it"
        )
    if core.dst.adds:
        core.queues[cb].add(index, result)
    else:
        core.tiles[cb].put(index, result)


def matmul_block(
    core: Core, a: str, b: str, a_tile: int, b_tile: int, out: str, slot: int, transpose: int, columns: int, rows: int,
    depth: int,
) -> None:  # fmt: skip
    _CHECK_MATMUL(core, (a, b, a_tile, b_tile, out, slot, transpose, columns, rows, depth))
    left, right = core.tiles[a], core.tiles[b]
    rows_of_a = np.stack([left.get(a_tile + r * depth) for r in range(rows)])
    columns_of_b = np.stack([right.get(b_tile + c) for c in range(columns)])
    core.dst.check_slot(MATMUL_BLOCK, out, slot + rows * columns - 1)
    assert MATMUL_BLOCK.meaning is not None
    core.dst.add(out, slot, MATMUL_BLOCK.meaning(rows_of_a, columns_of_b, transpose))


def reduce_block_max_row(
    core: Core, block: str, scaler: str, first: int, factor: int, out: str, slot: int, tiles: int
) -> None:
    op, values = REDUCE_BLOCK_MAX_ROW, core.tiles[block]
    _CHECK_BLOCK_MAX(core, (block, scaler, first, factor, out, slot, tiles))
    row = np.stack([core.dst.as_taken(op, values.get(first + number), block) for number in range(tiles)])
    core.dst.check_slot(op, out, slot)
    assert op.meaning is not None
    core.dst.write(op, out, slot, op.meaning(row, core.tiles[scaler].get(factor)))


def converting(form: Form) -> Callable[..., None]:
    """Rows at the front of a buffer to tiles, or tiles to rows: in DST sections of its own."""
    op, check = form.op, _checking(form)
    meaning = op.meaning
    assert meaning is not None

    def convert(core: Core, source: str, target: str, tiles: int) -> None:
        check(core, (source, target, tiles))
        core.dst.check_released(op)
        source_tiles, into = core.tiles[source], core.tiles[target]
        for index, page in enumerate(meaning(np.stack([source_tiles.get(index) for index in range(tiles)]))):
            into.put(index, page)

    return convert


# The set-up of the engine


def _checking(form: Form) -> Callable[[Core, _Values], None]:
    """What checks that the engine is set up for an operation, once it was started."""
    op = form.op
    located = {operand.name: (operand, at) for operand, at in form.places}
    named: tuple[tuple[Part, str], ...] = (("a", op.source_a), ("b", op.source_b), ("pack", op.packs))
    units: list[tuple[Part, int]] = [(unit, located[name][1]) for unit, name in named if name]
    init = [located[name] for name in op.init_operands]
    numbers = [at + 1 if operand.kind == "dst" else at for operand, at in init if operand.kind != "cb"]

    def check(core: Core, values: _Values) -> None:
        setup = core.setup
        if not setup.started:
            return
        for unit, at in units:
            setup.check_format(op, unit, values[at])
        if op.init:
            setup.check_init(op, tuple(float(values[at]) for at in numbers))

    return check


_CHECK_MATMUL = _checking(MATMUL_BLOCK.forms[0])
_CHECK_BLOCK_MAX = _checking(REDUCE_BLOCK_MAX_ROW.forms[0])


def initialising(form: Form) -> Callable[..., None]:
    """The init of an operation: its engine is set up for it, and for no other."""
    op = form.op

    def initialise(core: Core, *values: str | float) -> None:
        numbers = tuple(float(value) for value in values if not isinstance(value, str))
        if op.engine == "sfpu":
            core.setup.sfpu = op.init, numbers
            if core.setup.fpu is not None and OPS[f"tt.{core.setup.fpu[0]}"].disturbs_sfpu:
                core.setup.fpu = None
        else:
            core.setup.fpu = op.name, numbers
            if op.disturbs_sfpu:
                core.setup.sfpu = None

    return initialise


def uninitialise(core: Core, *values: object) -> None:
    core.setup.fpu = None


def startup(core: Core, in0: str, in1: str, out: str) -> None:
    core.setup.start(in0, in1, out)


def startup_matmul(core: Core, in0: str, in1: str, out: str) -> None:
    core.setup.start(in1, in0, out)


def reconfiguring(unit: Part) -> Callable[..., None]:
    """What sets a part to another format, and says which it had."""

    def reconfigure(core: Core, old: str, new: str) -> None:
        core.setup.change(unit, old, new)

    return reconfigure


def setting(unit: Part) -> Callable[..., None]:
    """What sets a part to a format, whichever it had."""

    def set_part(core: Core, new: str) -> None:
        core.setup.set(unit, new)

    return set_part


def l1_accumulate(core: Core, enable: int) -> None:
    core.dst.adds = bool(enable)


# Sections of DST


def acquire(core: Core) -> None:
    core.dst.acquire()


def commit(core: Core) -> None:
    core.dst.commit()


def wait(core: Core) -> None:
    core.dst.wait()


def release(core: Core) -> None:
    core.dst.release()
