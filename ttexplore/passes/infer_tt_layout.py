"""A1: where each tensor lies, and in which format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.build import dtype_of, op_name
from ttexplore.ir.dataflow import accesses, is_on_chip, is_parallel
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.ir.sizes import bound_shape, size_variables
from ttexplore.passes.place_tensors import place_tensors
from ttexplore.plan import FACE, FORMAT_OF_DTYPE, TILE_COLUMNS, TILE_ROWS, TensorLayout
from ttexplore.target import Target

_REASONS = {
    "float16": "ttnn has no float16 tensors; bfloat16 is the nearest",
    "uint8": "held as bfloat16, which is exact from 0 to 255",
}

# ttnn 0.81.1 makes tensors of up to 8 dimensions.
MAX_RANK = 8


def infer_tt_layout(program: Program, target: Target, *, layouts: Mapping[str, Any] | None = None) -> Program:
    """Decide the layout of each tensor: format, tiles, padded shape, memory.

        A: T.Tensor((1024, 512), "float16")
    ==> A: Float16_b, 32x32 tiles, 32 x 16 of them, DRAM interleaved

    A tensor is an input if the kernel reads it, an output if the kernel writes it. Each matrix of it is padded to
    whole tiles: the host fills the padding of an input with zeros, and cuts that of an output off.

    `layouts` says for a tensor where it lies: ``"L1"``, ``TTShard(axis=0, placement="L1")``, or keys as of
    T.annotate_tt_layout: ``{"memory": "L1", "shard": "height"}``. Shards in L1 go to the cores that B1 may use.
    ``{"page": "row"}`` leaves it row-major; the plan's notes say what that costs. Its rows become tiles, and tiles its
    rows, in the compute kernel (``"through": "tilize"``, the default for 16 bits), or on the way, 16 elements at a time
    (``"through": "runs"``, the default for 32 bits, which tilize does not keep whole).
    """
    roles = tensor_roles(program.kernel)
    sizes = size_variables(program.kernel)
    parameters = [p for p in program.kernel.params if not any(p.same_as(size) for size in sizes)]
    values = program.plan.size_values
    made = tuple(_layout(parameter, index, roles, values) for index, parameter in enumerate(parameters))
    placed = place_tensors(made, layouts or {}, program.plan, target)
    notes = tuple(_cost_of_rows(layout) for layout in placed if layout.page == "row")
    return program.with_plan(layouts=placed, notes=(*program.plan.notes, *notes))


def _cost_of_rows(layout: TensorLayout) -> str:
    if layout.through == "tilize":
        if layout.role == "input":
            return (
                f"{layout.name} is row-major, through tilize: the reader moves whole rows of each block, and the "
                "compute kernel makes tiles of them, which is exact for 16 bits"
            )
        return (
            f"{layout.name} is row-major, through untilize: the compute kernel makes rows of the tiles, which is exact "
            "for 16 bits, and the writer moves whole rows of each block"
        )
    transfers = TILE_ROWS * TILE_COLUMNS // FACE
    mover = "reader" if layout.role == "input" else "writer"
    return (
        f"{layout.name} is row-major, in runs: the {mover} moves {transfers} runs of {FACE} elements "
        f"({FACE * layout.element_bytes} bytes) for each tile, instead of one page"
    )


def tensor_roles(function: Any) -> dict[str, Literal["input", "output", "inout"]]:
    """What the kernel does with each of its tensors, from its statements alone."""
    read: set[str] = set()
    written: set[str] = set()
    inside: list[Any] = []
    for statement in walk(function.body):
        if any(statement.same_as(part) for part in inside) or not (is_parallel(statement) or _is_operation(statement)):
            continue
        if is_parallel(statement):
            inside += walk(statement.body)
        for access in accesses(statement):
            if not is_on_chip(access.buffer):
                if access.kind != "write":
                    read.add(access.buffer.name)
                if access.kind != "read":
                    written.add(access.buffer.name)
    roles: dict[str, Literal["input", "output", "inout"]] = dict.fromkeys(read, "input")
    for name in written:
        roles[name] = "inout" if name in read else "output"
    return roles


def _is_operation(statement: Any) -> bool:
    return op_name(statement).startswith("tl.")


def _layout(parameter: Any, position: int, roles: dict[str, Any], sizes: Mapping[str, int]) -> TensorLayout:
    span = span_of(parameter)
    if not is_buffer(parameter):
        raise Unsupported(
            f"the scalar parameter {parameter.name}",
            hint="make it a constant of the kernel, or a tensor of one element",
            span=span,
        )
    name, dtype = str(parameter.name), dtype_of(parameter)
    shape = bound_shape(parameter, sizes)
    if dtype not in FORMAT_OF_DTYPE:
        raise Unsupported(
            f"{name} is {dtype}, which no tile format holds",
            hint=f"use one of {', '.join(FORMAT_OF_DTYPE)}",
            span=span,
        )
    if len(shape) > MAX_RANK:
        raise Unsupported(f"{name} has {len(shape)} dimensions", hint=f"use at most {MAX_RANK}", span=span)
    if roles.get(name) == "inout":
        raise Unsupported(
            f"{name} is read and written by the kernel",
            hint="write to a separate output tensor",
            span=span,
        )
    if name not in roles:
        raise KernelError(f"{name} is neither read nor written", hint="remove the parameter", span=span)
    *leading, rows, columns = shape if len(shape) > 1 else (1, *shape)
    padded = (*leading, _padded(rows, TILE_ROWS), _padded(columns, TILE_COLUMNS))
    padding: Literal["none", "zero", "any"] = "none"
    if padded[-2:] != (rows, columns):
        padding = "zero" if roles[name] == "input" else "any"
    reason = _REASONS.get(dtype, "default")
    return TensorLayout(
        name, position, roles[name], shape, dtype, FORMAT_OF_DTYPE[dtype], padded, padding, reason=reason
    )  # fmt: skip


def _padded(extent: int, tile: int) -> int:
    return -(-extent // tile) * tile
