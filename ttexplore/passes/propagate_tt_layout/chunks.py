"""Depths of circular buffers that are asked for in tiles: along the summed dimension of products, and along the
sequence of chained products."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import ir, tirx

from ttexplore.errors import UsageError
from ttexplore.ir.adapter import elements, identity, variables_of
from ttexplore.ir.build import attribute, constant, op_name, regions, runs, shape_of
from ttexplore.ir.dataflow import accesses, blocks, is_on_chip, is_parallel
from ttexplore.ir.operations.storage import Staging
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
from ttexplore.plan import TILE_COLUMNS


def summed_depths(staging: Staging, tiles: int) -> dict[str, int]:
    """The depths at which the loaded operands of products hold `tiles` tiles along the summed dimension.

    Raises UsageError if that is no number of whole blocks, or if no product loads an operand.
    """
    depths: dict[str, int] = {}
    for read, buffer, role in staging.reads:
        if not runs(read, tl.GEMM) or role not in ("A", "B"):
            continue
        rows, columns = shape_of(buffer)[-2:]
        summed = columns if (role == "A") != bool(attribute(read, f"transpose_{role}")) else rows
        block = -(-summed // TILE_COLUMNS)
        for (_, written), name in staging.writes.items():
            if written.same_as(buffer) and staging.buffers[name].producer == "reader":
                depths[name] = _depth("chunk_k_tiles", tiles, name, block, "the summed dimension")
    if not depths:
        raise UsageError(
            "U010", "chunk_k_tiles is given, but no product loads an operand from DRAM", hint="omit chunk_k_tiles"
        )
    return depths


def sequence_depths(kernel: tirx.PrimFunc, staging: Staging, tiles: int) -> dict[str, int]:
    """The depths at which the operands that a loop loads for chained products hold `tiles` tiles of its sequence.

        for k in T.Pipelined(n):
            T.copy(K[k * 64 : +64, :], K_shared)      a block is 2 tiles of the sequence
            T.gemm(Q_shared, K_shared, S, transpose_B=True)
            ...                                       P from S
            T.copy(V[k * 64 : +64, :], V_shared)
            T.gemm(P, V_shared, O)

    Products are chained if one has an operand that is computed from the result of another one in the same loop. Raises
    UsageError if the tiles are no number of whole blocks, or if no loop loads operands of chained products.
    """
    depths: dict[str, int] = {}
    names = {statement.var: statement.value for statement in walk(kernel.body) if isinstance(statement, tirx.Bind)}
    for loop in walk(kernel.body):
        if not isinstance(loop, tirx.For) or is_parallel(loop) or loop.thread_binding is not None:
            continue
        body = blocks(loop.body)
        operands = {identity(buffer) for buffer in _operands_of_chained(body)}
        for statement in body:
            if not runs(statement, tl.COPY) or is_on_chip(regions(statement)[0].source):
                continue
            source, target = regions(statement)
            name = staging.writes.get((statement, target.source))
            if identity(target.source) not in operands or name is None or staging.buffers[name].producer != "reader":
                continue
            for interval in elements(source.region):
                extent = constant(interval.extent)
                if extent is not None and extent > 1 and _depends(interval.min, loop.loop_var, names):
                    depths[name] = _depth("qk_chunk_tiles", tiles, name, -(-extent // TILE_COLUMNS), "the sequence")
    if not depths:
        raise UsageError(
            "U010",
            "qk_chunk_tiles is given, but no loop loads operands of chained products, as Q K^T and P V are",
            hint="omit qk_chunk_tiles; chunk_k_tiles is for products on their own",
        )
    return depths


def _operands_of_chained(body: list[tirx.Stmt]) -> Iterator[tirx.Buffer]:
    """The operands of the products in a loop, if some of these are chained."""
    products = [statement for statement in body if runs(statement, tl.GEMM)]
    steps = [statement for statement in body if is_parallel(statement) or op_name(statement) in tl.STATEMENTS]
    chained = {identity(regions(product)[2].source) for product in products}
    while True:
        count = len(chained)
        for step in steps:
            touched = accesses(step)
            if any(identity(access.buffer) in chained for access in touched if access.kind != "write"):
                chained |= {identity(access.buffer) for access in touched if access.kind != "read"}
        if len(chained) == count:
            break
    factors = [region.source for product in products for region in regions(product)[:2]]
    if any(identity(buffer) in chained for buffer in factors):
        yield from (buffer for buffer in factors if identity(buffer) not in chained)


def _depends(expression: ir.Expr, variable: ir.Var, names: dict[ir.Var, ir.Expr]) -> bool:
    return any(
        candidate.same_as(variable) or (candidate in names and _depends(names[candidate], variable, names))
        for candidate in variables_of(expression)
    )


def _depth(option: str, tiles: int, name: str, block: int, along: str) -> int:
    if tiles < block or tiles % block:
        raise UsageError(
            "U010",
            f"{option} is {tiles}; a block of {name} is {block} tiles along {along}",
            hint=f"use a multiple of {block}",
        )
    return tiles // block
