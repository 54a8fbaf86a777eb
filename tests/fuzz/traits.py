"""What a random kernel has of each construct: a campaign tells how often each was drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.fuzz.description import (
    BLOCK_INDICES,
    INDEX_FUNCTIONS,
    Allocate,
    Bind,
    Blocks,
    Branch,
    Call,
    Copy,
    Expression,
    Gemm,
    Kernel,
    Load,
    Loop,
    Parallel,
    Position,
    Reduce,
    Region,
    Scalar,
    Schedule,
    Statement,
    Store,
    statements,
    stores,
    unused,
)
from tests.fuzz.meaning import OPERATIONS


def traits(kernel: Kernel, schedule: Schedule) -> set[str]:
    """The names of the constructs and of the kinds of options that this kernel has."""
    return set(_of_statements(kernel)) | set(_of_places(kernel)) | set(_of_schedule(kernel, schedule))


def _of_statements(kernel: Kernel) -> Iterator[str]:
    every = list(statements(kernel.body))
    products = [one for one in every if isinstance(one, Gemm)]
    nests = [one for one in every if isinstance(one, Parallel)]
    if products:
        yield "product"
    if len(products) > 1:
        yield "several products"
    if {one.c for one in products} & {one for gemm in products for one in _sources(gemm, every)}:
        yield "chained products"
    reductions = [one for one in every if isinstance(one, Reduce)]
    for one in reductions:
        yield f"{one.kind} of {'rows' if one.dim else 'columns'}"
    if any(not one.clear for one in reductions):
        yield "reduction that keeps its target"
    if nests:
        yield "element-wise"
    if len(nests) > 1:
        yield "several T.Parallel"
    if any(_has(one.value, "select") for nest in nests for one in nest.body):
        yield "if_then_else"
    tensors = {tensor.name for tensor in kernel.tensors}
    for one in stores(kernel.body):
        if one.test is not None:
            yield "if in T.Parallel" if one.other is None else "if and else in T.Parallel"
            if any(index in text for text in _positions(one.test) for index in BLOCK_INDICES):
                yield "condition on the place in a tensor"
        if any(" // " in text or " % " in text for text in _positions(one.value)):
            yield "division of a loop variable of elements"
        if one.indices:
            yield "store of T.Parallel to a tensor"
        if one.loaded & tensors:
            yield "read of T.Parallel from a tensor"
    for one in every:
        if isinstance(one, Branch):
            yield "if and else around blocks" if one.other else "if around blocks"
    if any(isinstance(one, Loop) and _has_loop(one.body) for one in every):
        yield "nested loops"
    if any(isinstance(one, Loop) for one in every):
        yield "loop"
    if any(isinstance(one, Loop) and one.own for one in every):
        yield "loop of a block's own length"
    loops = [*_loops(kernel)]
    if any(one.first for one in loops):
        yield "loop from a bound of a block's own"
    if any(_before(text, kernel) for one in loops for text in (one.first, one.shift) if text):
        yield "loop from a negative bound"
    if any(isinstance(one, Loop) and one.in_python for one in every):
        yield "loop in Python"
    for test in [one.test for one in loops if one.test]:
        yield "branch by an element" if "[" in test else "branch by indices"
    for form in {one.form for nest in nests for one in nest.body if isinstance(one, Bind)}:
        yield f"value kept: {form}"
    for one in every:
        if isinstance(one, Scalar):
            yield f"scalar: {one.form}"
            if any(isinstance(loop, Loop) and one in statements(loop.body) for loop in every):
                yield "scalar carried through a loop"
    if sum(isinstance(one, Copy) for one in every) == len([one for one in every if not isinstance(one, Allocate)]):
        yield "copies alone"


def _of_places(kernel: Kernel) -> Iterator[str]:
    shapes = {tensor.name: kernel.shape(tensor) for tensor in kernel.tensors}
    if kernel.sizes:
        yield "T.dynamic"
    if any(isinstance(one, Loop) and isinstance(one.extent, Blocks) for one in statements(kernel.body)):
        yield "T.dynamic loop"
    starts = [text for one in statements(kernel.body) if isinstance(one, Copy) for text in one.source.starts]
    if any("T." in text or " - " in text for text in starts):
        yield "signed index"
    bounds = [text for one in _loops(kernel) for text in (one.first, one.shift)]
    if any("T.cast" in text for text in (*starts, *bounds)):
        yield "narrow cast in an index or a bound"
    if unused(kernel):
        yield "unused tensor"
    if any(not re.fullmatch(r"[a-zA-Z]\d+", tensor.name) for tensor in kernel.tensors) or kernel.name != "kernel":
        yield "hostile names"
    first = dict.fromkeys((one.variable for one in _loops(kernel)), 0)
    for one in statements(kernel.body):
        if isinstance(one, Copy):
            for region, what in ((one.source, "read"), (one.target, "store")):
                if region.name in shapes and _is_behind(region, shapes[region.name], kernel):
                    yield f"{what} wholly behind the end"
                if region.name in shapes and region.extents[-1] == 1 and max(region.extents) > 1:
                    yield f"{what} of columns"
                if region.name in shapes and any(_before(text, kernel, **first) for text in region.starts):
                    yield f"{what} before the start"
    if any(extent % 32 for shape in shapes.values() for extent in shape[-2:]):
        yield "tensor of no whole tiles"
    if any(len(shape) > 2 for shape in shapes.values()):
        yield "tensor of rank 3 and more"
    if computes_bytes(kernel):
        yield "bytes that wrap around"
    dtypes = {one.name: one.dtype for one in statements(kernel.body) if isinstance(one, Allocate)}
    if any(isinstance(one, Gemm) and dtypes[one.c] == "int32" for one in statements(kernel.body)):
        yield "product of integers"
    for dtype in ("int32", "uint8", "int8", "float8_e4m3fn", "float8_e5m2"):
        if any(tensor.dtype == dtype for tensor in kernel.tensors):
            yield dtype
    for one in statements(kernel.body):
        if isinstance(one, Allocate) and any(extent % 32 for extent in one.shape):
            yield "block of no whole tiles"
        if isinstance(one, Copy):
            for region in (one.source, one.target):
                if region.name in shapes and _has_tail(region, shapes[region.name]):
                    yield "tail"


def _of_schedule(kernel: Kernel, schedule: Schedule) -> Iterator[str]:
    if kernel.annotations:
        yield "annotations"
    text = " ".join(kernel.annotations)
    for name in ("policy", "order", "work_lists", "mode", "core_ranges", "accumulate", "stages", "math_fidelity"):
        value = schedule.options.get(name)
        if value is not None or f"{name}=" in text:
            shown = name == "mode" or (name == "policy" and value is not None)
            yield f"{name} {str(value).partition('(')[0]}" if shown else name
    if "layouts" in schedule.options or "annotate_tt_layout" in text or "annotate_tt_sharding" in text:
        yield "layouts"
        for one in ("bfp8_b", "page"):
            if one in f"{text} {schedule.options.get('layouts')}":
                yield f"layouts with {one}"
    if schedule.target != "wormhole_n150":
        yield "another target"
    if schedule.few_buffers:
        yield "few circular buffers"


def _has_tail(region: Region, shape: tuple[int, ...]) -> bool:
    """Whether blocks of a region do not cover its tensor evenly."""
    return region.form != "whole" and any(length % extent for length, extent in zip(shape, region.extents, strict=True))


def _is_behind(region: Region, shape: tuple[int, ...], kernel: Kernel) -> bool:
    """Whether the region of the last turn of the last block is behind the end of the tensor."""
    if region.form == "whole":
        return False
    last = {
        loop.variable: kernel.number(loop.extent) - 1 + sum(_of_blocks(loop.shift, kernel, -1))
        for loop in _loops(kernel)
    }
    return any(
        start >= length
        for text, length in zip(region.starts, shape, strict=True)
        for start in _of_blocks(text, kernel, -1, **last)
    )


def _before(text: str, kernel: Kernel, **names: int) -> bool:
    """Whether a bound, or a start, is negative in the first block."""
    return any(number < 0 for number in _of_blocks(text, kernel, 0, **names))


def _of_blocks(text: str, kernel: Kernel, at: int, **names: int) -> Iterator[int]:
    """The value of an expression in the first (0) or the last (-1) block; nothing where there is no expression."""
    blocks = {name: range(kernel.number(extent))[at] for name, extent in zip(BLOCK_INDICES, kernel.grid, strict=False)}
    if text:
        yield int(eval(text, {"T": INDEX_FUNCTIONS}, {**blocks, **names}))


def _loops(kernel: Kernel) -> Iterator[Loop]:
    return (one for one in statements(kernel.body) if isinstance(one, Loop))


def _sources(gemm: Gemm, every: list[Statement]) -> set[str]:
    """The operands of a product, and what element-wise blocks and copies made them from."""
    found = {gemm.a, gemm.b}
    for one in every:
        if isinstance(one, Parallel):
            for store in one.body:
                if isinstance(store, Store) and store.buffer in found:
                    found |= _loads(store.value)
        elif isinstance(one, Copy) and one.target.name in found:
            found.add(one.source.name)
    return found


def _loads(value: Expression) -> set[str]:
    match value:
        case Load(buffer, _):
            return {buffer}
        case Call(_, arguments):
            return set[str]().union(*map(_loads, arguments))
        case _:
            return set()


def _positions(value: Expression) -> list[str]:
    match value:
        case Position(text):
            return [text]
        case Call(_, arguments):
            return [text for one in arguments for text in _positions(one)]
        case _:
            return []


def _has(value: Expression, name: str) -> bool:
    return isinstance(value, Call) and (value.name == name or any(_has(one, name) for one in value.arguments))


def computes_bytes(kernel: Kernel) -> bool:
    """Whether bytes are operands of other operations than comparisons."""
    held = {one.name for one in statements(kernel.body) if isinstance(one, Allocate) and one.dtype == "uint8"}

    def computes(value: Expression) -> bool:
        if not isinstance(value, Call):
            return False
        direct = any(isinstance(one, Load) and one.buffer in held for one in value.arguments)
        return (direct and OPERATIONS[value.name].kind == "number") or any(map(computes, value.arguments))

    nests = [one for one in statements(kernel.body) if isinstance(one, Parallel)]
    return any(computes(one.value) for nest in nests for one in nest.body)


def _has_loop(body: tuple[Statement, ...]) -> bool:
    return any(isinstance(one, Loop) for one in body)
