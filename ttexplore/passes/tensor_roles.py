"""The role of each tensor of a kernel: read, written, or both."""

from __future__ import annotations

from typing import Literal

from tvm import ir, tirx

from ttexplore.ir.adapter import elements, is_buffer
from ttexplore.ir.build import arguments, attribute, op_name, regions
from ttexplore.ir.dataflow import AccessKind, is_on_chip, loads_of
from ttexplore.ir.reductions import reduction_of
from ttexplore.ir.rewrite import walk

Role = Literal["input", "output", "inout"]


# The attribute of a launch that lists its parameters in which earlier launches have left numbers, by index.
KEPT = "ttexplore.kept"


def tensor_roles(function: tirx.PrimFunc) -> dict[str, Role]:
    """The role of each tensor, from the kernel's statements alone. An unused tensor is an input."""
    return roles_of(function, *read_and_written(function))


def roles_of(function: tirx.PrimFunc, read: set[str], written: set[str]) -> dict[str, Role]:
    """The roles for tensors that are read and written. What an earlier launch has left in a tensor goes in as well:
    this one may write only a part."""
    roles: dict[str, Role] = {}
    parameters = elements(function.params)
    kept = {str(parameters[int(index)].name) for index in (function.attrs or {}).get(KEPT, ())}
    for name in (str(one.name) for one in parameters if is_buffer(one)):
        roles[name] = "input" if name not in written else "inout" if name in read | kept else "output"
    return roles


def read_and_written(function: tirx.PrimFunc) -> tuple[set[str], set[str]]:
    """The names of the tensors that the kernel reads, and of those that it writes."""
    read: set[str] = set()
    written: set[str] = set()
    for statement in walk(function.body):
        for buffer, kind in touched(statement):
            if not is_on_chip(buffer):
                if kind != "write":
                    read.add(str(buffer.name))
                if kind != "read":
                    written.add(str(buffer.name))
    return read, written


def touched(statement: tirx.Stmt) -> list[tuple[tirx.Buffer, AccessKind]]:
    """Each buffer that a statement itself reads or writes, whole blocks or elements; nested statements do not count."""
    found: list[tuple[tirx.Buffer, AccessKind]] = []
    values: list[ir.Expr] = []
    match statement:
        case tirx.For():
            values = [statement.min, statement.extent]
        case tirx.IfThenElse() | tirx.While():
            values = [statement.condition]
        case tirx.Bind():
            values = [statement.value]
        case tirx.BufferStore():
            values = [statement.value, *statement.indices]
            found.append((statement.buffer, "write"))
        case tirx.Evaluate() if op_name(statement).startswith("tl."):
            blocks = regions(statement)
            values = [one for one in arguments(statement) if not isinstance(one, ir.TensorRegion)]
            values += [bound for one in blocks for part in elements(one.region) for bound in (part.min, part.extent)]
            # The last block is the one that is written: T.copy(source, target), T.gemm(A, B, C), T.fill(target, value).
            found.extend((one.source, "read") for one in blocks[:-1])
            adds = op_name(statement) == "tl.gemm" and not attribute(statement, "clear_accum")
            reduction = reduction_of(statement)
            adds = adds or (reduction is not None and not reduction.clear)
            found.extend((one.source, "update" if adds else "write") for one in blocks[-1:])
        case _:
            # Nothing else touches a buffer.
            pass
    found.extend((load.source, "read") for value in values for load in loads_of(value))
    return found
