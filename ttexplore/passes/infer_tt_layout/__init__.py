"""A1: decide where each tensor lies, and in which format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tvm import ir, tirx

from ttexplore.analysis.place_tensors import place_tensors
from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.arithmetic.sizes import bound_shape, size_variables
from ttexplore.ir.build import dtype_of, op_name, statements
from ttexplore.ir.dataflow import accesses, is_parallel
from ttexplore.ir.operations.quantified import deciding_load
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.ops.storage import instead_of
from ttexplore.passes.infer_tt_layout.single_elements import refuse_single_elements
from ttexplore.passes.launches.tensor_roles import Role, read_and_written, roles_of
from ttexplore.plan import (
    FACE,
    FORMAT_OF_DTYPE,
    SMALL_FLOATS,
    SMALL_WHOLES,
    TILE_COLUMNS,
    TILE_ROWS,
    TensorLayout,
)
from ttexplore.target import Target

_REASONS = {
    "float16": "ttnn has no float16 tensors; bfloat16 is the nearest",
    **{
        dtype: f"stored as bfloat16, which holds every number of {dtype}; the host converts"
        for dtype in (*SMALL_WHOLES, *SMALL_FLOATS)
    },
}

# The dtype in which an unused input is stored that has no tile format.
_UNREAD = "float32"

# ttnn 0.81.1 makes tensors of up to 8 dimensions.
MAX_RANK = 8


def infer_tt_layout(program: TirProgram, target: Target, *, layouts: Mapping[str, object] | None) -> TirProgram:
    """Decide the layout of each tensor: format, tiles, padded shape, memory.

        A: T.Tensor((1024, 512), "float16")
    ==> A: Float16_b, 32x32 tiles, 32 x 16 of them, DRAM interleaved

    A tensor that the kernel writes is an output, and an input as well if it is read or not proved to be written whole;
    all others are inputs, even if unused. Each matrix of a tensor is padded to whole tiles: the host fills the padding
    of an input with zeros and removes the padding of an output. An unused input may have any dtype; without a tile
    format, it is stored as float32.

    `layouts` requests the placement of single tensors: ``"L1"``, ``TTShard(axis=0, placement="L1")``, or the keys of
    T.annotate_tt_layout: ``{"memory": "L1", "shard": "height"}``. Shards in L1 go to the cores that B1 may use.
    ``{"page": "row"}`` keeps a tensor row-major; the plan's notes list the cost. Conversion between rows and tiles runs
    in the compute kernel (``"through": "tilize"``, the default for 16-bit formats) or during the transfer, 16 elements
    at a time (``"through": "runs"``, the default for 32-bit formats, because tilize converts float32 to TF32).
    """
    refuse_single_elements(program.kernel)
    _check_blocks(program.kernel.body)
    read, written = read_and_written(program.kernel)
    roles = roles_of(program.kernel, read, written)
    _check_numbers(program.kernel, roles)
    _check_outputs(program.kernel, roles)
    sizes = size_variables(program.kernel)
    parameters = [p for p in program.kernel.params if not any(p.same_as(size) for size in sizes)]
    values = program.plan.size_values
    tensor_layouts = tuple(_layout(parameter, index, roles, values, read) for index, parameter in enumerate(parameters))
    placed = place_tensors(tensor_layouts, layouts or {}, program, target)
    notes = tuple(
        note("unread input", tensor=layout.name)
        for layout in tensor_layouts
        if layout.role == "input" and layout.name not in read
    )
    notes += tuple(_cost_of_rows(layout) for layout in placed if layout.page == "row")
    return program.with_plan(layouts=placed, notes=(*program.plan.notes, *notes))


def _cost_of_rows(layout: TensorLayout) -> Note:
    if layout.through == "tilize":
        return note("tilized" if layout.role == "input" else "untilized", tensor=layout.name)
    transfers = TILE_ROWS * TILE_COLUMNS // FACE
    mover = "reader" if layout.role == "input" else "writer"
    size = {"elements": FACE, "bytes": FACE * layout.element_bytes}
    return note("runs", tensor=layout.name, mover=mover, runs=transfers, **size)


def _check_blocks(body: tirx.Stmt) -> None:
    """Raise Unsupported for an operation or a T.Parallel that no rule lowers."""
    for statement in statements(body):
        if is_parallel(statement) or op_name(statement) in tl.STATEMENTS:
            accesses(statement)
        elif isinstance(statement, tirx.For | tirx.While):
            _check_blocks(statement.body)
        elif isinstance(statement, tirx.IfThenElse):
            _check_blocks(statement.then_case)
            if statement.else_case is not None:
                _check_blocks(statement.else_case)


def _check_numbers(function: tirx.PrimFunc, roles: Mapping[str, Role]) -> None:
    """Raise Unsupported for an element that decides something, of a tensor that the kernel writes: the reader may be
    ahead of the writer."""
    for statement in walk(function.body):
        load = deciding_load(statement.value) if isinstance(statement, tirx.Bind) else None
        if load is not None:
            name = str(load.source.name)
            if roles.get(name, "input") != "input":
                raise Unsupported(
                    "L013",
                    f"an element of {name}, which the kernel writes, decides a branch, a length or a place",
                    hint="read it from another tensor, which an earlier kernel has written",
                    span=span_of(statement),
                )


def _check_outputs(function: tirx.PrimFunc, roles: Mapping[str, Role]) -> None:
    """Raise KernelError for a kernel without outputs, and for a declared output that is not written."""
    outputs = function.attrs.get(tl.OUTPUTS, ())
    for output in (function.params[int(index)] for index in outputs):
        if roles[str(output.name)] == "input":
            raise KernelError(
                "K007",
                f"{output.name} is an output, but the kernel never writes it",
                hint="write it, or remove it from out_idx= and from the return value",
                span=span_of(output),
            )
    if "output" not in roles.values() and "inout" not in roles.values():
        raise KernelError(
            "K007",
            "the kernel writes no tensor",
            hint="copy the result to a tensor: T.copy(result, C[...])",
            span=span_of(function),
        )


def _layout(
    parameter: ir.Var, position: int, roles: Mapping[str, Role], sizes: Mapping[str, int], read: set[str]
) -> TensorLayout:
    span = span_of(parameter)
    if not is_buffer(parameter):
        raise Unsupported(
            "L010",
            f"the scalar parameter {parameter.name}",
            hint="make it a T.int32, a T.float32 or a tensor of one element",
            span=span,
        )
    name, dtype = str(parameter.name), dtype_of(parameter)
    shape = bound_shape(parameter, sizes)
    reason = _REASONS.get(dtype, "default")
    if dtype not in FORMAT_OF_DTYPE and roles[name] == "input" and name not in read:
        dtype, reason = _UNREAD, f"no tile format supports {dtype}, and nothing reads it"
    if dtype not in FORMAT_OF_DTYPE:
        raise Unsupported(
            "L009",
            f"{name} is {dtype}: no tile format supports this dtype",
            hint=instead_of(dtype),
            span=span,
        )
    if len(shape) > MAX_RANK:
        raise Unsupported("L010", f"{name} has {len(shape)} dimensions", hint=f"use at most {MAX_RANK}", span=span)
    *leading, rows, columns = shape if len(shape) > 1 else (1, *shape)
    padded = (*leading, _padded(rows, TILE_ROWS), _padded(columns, TILE_COLUMNS))
    padding: Literal["none", "zero", "any"] = "none"
    if padded[-2:] != (rows, columns):
        padding = "zero" if roles[name] == "input" else "any"
    return TensorLayout(
        name, position, roles[name], shape, dtype, FORMAT_OF_DTYPE[dtype], padded, padding, reason=reason
    )  # fmt: skip


def _padded(extent: int, tile: int) -> int:
    return -(-extent // tile) * tile
