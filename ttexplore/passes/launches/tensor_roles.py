"""The role of each tensor of a kernel: read, written, or both."""

from __future__ import annotations

from typing import Literal

from tvm import ir, tirx

from ttexplore.ir.adapter import elements, is_buffer
from ttexplore.ir.build import arguments, op_name, regions
from ttexplore.ir.dataflow import AccessKind, is_on_chip, loads_of, regions_used
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
from ttexplore.passes.launches.coverage import gap_in, stored_regions

Role = Literal["input", "output", "inout"]


# The attribute of a kernel with the parameters that it may store in part only, by index as text, and why.
_KEPT = "ttexplore.kept"


def tensor_roles(function: tirx.PrimFunc) -> dict[str, Role]:
    """The role of each tensor, from the kernel's statements alone. An unused tensor is an input."""
    return roles_of(function, *read_and_written(function))


def roles_of(function: tirx.PrimFunc, read: set[str], written: set[str]) -> dict[str, Role]:
    """The roles for tensors that are read and written. What is not stored of a tensor keeps what it held before, also
    where passes have found that none of its stores happens."""
    incomplete = kept_parts(function).keys()
    roles: dict[str, Role] = {}
    for name in (str(parameter.name) for parameter in elements(function.params) if is_buffer(parameter)):
        if name in incomplete or (name in written and name in read):
            roles[name] = "inout"
        else:
            roles[name] = "output" if name in written else "input"
    return roles


def kept_parts(function: tirx.PrimFunc) -> dict[str, str]:
    """The tensors that a kernel stores to without a proof that it stores all of them, and why, by name."""
    recorded, parameters = (function.attrs or {}).get(_KEPT), elements(function.params)
    if recorded is not None:
        return {str(parameters[int(str(index))].name): str(reason) for index, reason in recorded.items()}
    tensors = {str(parameter.name): parameter for parameter in parameters if is_buffer(parameter)}
    stored = stored_regions(function).items()
    gaps = {name: gap_in(stores, tensors[name]) for name, stores in stored if name in tensors}
    return {name: gap.reason for name, gap in gaps.items() if gap is not None}


def with_kept_parts(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel that knows these tensors, whatever passes make of its statements."""
    if _KEPT in (function.attrs or {}):
        return function
    names = [str(parameter.name) for parameter in elements(function.params)]
    return function.with_attr(
        _KEPT, {str(names.index(name)): reason for name, reason in kept_parts(function).items()}
    )  # fmt: skip


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
    accesses: list[tuple[tirx.Buffer, AccessKind]] = []
    values: list[ir.Expr] = []
    if type(statement) is tirx.For:
        values = [statement.min, statement.extent]
    elif type(statement) is tirx.IfThenElse or type(statement) is tirx.While:
        values = [statement.condition]
    elif type(statement) is tirx.Bind:
        values = [statement.value]
    elif type(statement) is tirx.BufferStore:
        values = [statement.value, *statement.indices]
        accesses.append((statement.buffer, "write"))
    elif op_name(statement) in tl.STATEMENTS:
        blocks = regions(statement)
        values = [argument for argument in arguments(statement) if type(argument) is not ir.TensorRegion]
        values += [
            bound
            for block in blocks
            for interval in elements(block.region)
            for bound in (interval.min, interval.extent)
        ]
        accesses.extend((region.source, kind) for region, kind in regions_used(statement))
    accesses.extend((load.source, "read") for value in values for load in loads_of(value))
    return accesses
