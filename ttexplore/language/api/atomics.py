"""Updates of elements that several blocks of the launch grid share: ``T.atomic_add``, ``T.atomic_max``,
``T.atomic_min``."""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import constant, shape_of, variable
from ttexplore.ir.operations.atomics import updated
from ttexplore.language.api.tile import as_region, extents, note_hints, same_block
from ttexplore.language.tracer.builder import Builder, current, element, sequence, unsupported
from ttexplore.language.tracer.spans import caller_span
from ttexplore.ops import language as tl

# Names of the loops over a block.
_LOOPS = "ijklmn"


def atomic(kind: str) -> Callable[..., None]:
    """``T.atomic_<kind>(dst, value)``."""
    callee = f"T.atomic_{kind}"

    def update(
        dst: object, value: object, memory_order: object = None, return_prev: bool = False, **hints: object
    ) -> None:  # fmt: skip
        if return_prev:
            raise unsupported(
                f"{callee} with return_prev=True",
                "read the element before the update, in a kernel in which one block owns it",
            )
        note_hints(callee, {"memory_order": memory_order, **hints})
        builder = current(callee)
        builder.span = caller_span(builder.files)
        if is_buffer(value) or isinstance(value, ir.TensorRegion) or not isinstance(dst, ir.TensorLoad):
            _update_block(builder, kind, dst, value)
        else:
            _update(builder, kind, dst, element(value, callee))

    update.__name__ = update.__qualname__ = f"atomic_{kind}"
    update.__doc__ = f"""Set each element of a tensor to {_SENTENCES[kind]}, as one step that no other block interrupts.

    `dst` is an element in T.Parallel, or a region as that of T.copy. The work items that update the same elements run
    on one core, in the order of their numbers. Raises KernelError if the shapes differ, Unsupported with `return_prev`.
    """
    return update


def vector_add(width: int) -> Callable[..., None]:
    """``T.atomic_addx<width>(dst, value)``."""
    callee = f"T.atomic_addx{width}"

    def add(dst: object, value: object, return_prev: bool = False) -> None:
        if return_prev or not isinstance(dst, ir.TensorLoad) or not isinstance(value, ir.TensorLoad):
            raise unsupported(
                f"{callee} with return_prev=True" if return_prev else f"{callee} of anything but two elements",
                f"write {callee}(C[i, j * {width}], c[i, j * {width}]) in T.Parallel",
            )
        builder = current(callee)
        builder.span = caller_span(builder.files)
        lane = variable("lane")
        with builder.collect() as body:
            old, addend = (
                builder.read(load.source, (*load.indices[:-1], load.indices[-1] + lane)) for load in (dst, value)
            )
            _update(builder, "add", old, addend)
        nest = sequence(body)
        lanes = tirx.const(width, "int32")
        builder.emit(
            tirx.For(lane, tirx.const(0, "int32"), lanes, tirx.ForKind.PARALLEL, nest, span=builder.tvm_span())
        )

    add.__name__ = add.__qualname__ = f"atomic_addx{width}"
    add.__doc__ = f"""Add {width} neighbouring elements to {width} neighbouring elements of a tensor: each is one
    T.atomic_add. `dst` and `value` are the first of them. Raises Unsupported for anything else, and with `return_prev`.
    """
    return add


_SENTENCES = {
    "add": "the sum of it and a value", "max": "the larger of it and a value", "min": "the smaller of it and a value"
}  # fmt: skip
KINDS = tuple(tl.ATOMICS)


def _update(builder: Builder, kind: str, old: ir.TensorLoad, value: ir.Expr) -> None:
    if value.ty != old.ty:
        value = tirx.Cast(old.ty, value)
    builder.store(old.source, tuple(old.indices), updated(kind, old, value))


def _update_block(builder: Builder, kind: str, dst: object, value: object) -> None:
    """The update of a region, as one of its elements in T.Parallel."""
    callee = f"T.atomic_{kind}"
    is_block = is_buffer(value) or isinstance(value, ir.TensorRegion | ir.TensorLoad)
    source = as_region(value, callee) if is_block else None
    target = as_region(dst, callee, extents(source) if source is not None else None)
    if source is not None and not same_block(extents(source), extents(target)):
        raise KernelError(
            "K002",
            f"{callee}: the shapes differ: {target.source.name} {tuple(extents(target))} and {source.source.name} "
            f"{tuple(extents(source))}",
            hint="update a region with a block of the same shape",
        )
    sizes = [extent for extent in extents(target) if extent != 1] or [1]
    target = _of_base(builder, callee, target, sizes)
    loops = [variable(name) for name in _LOOPS[: len(sizes)]]
    old = builder.read(target.source, _places(target, loops, sizes))
    operand = element(value, callee) if source is None else builder.read(source.source, _places(source, loops, sizes))
    with builder.collect() as body:
        _update(builder, kind, old, operand)
    span = builder.tvm_span()
    statement = body[0]
    for loop, extent in zip(reversed(loops), reversed(sizes), strict=True):
        statement = tirx.For(
            loop, tirx.const(0, "int32"), tirx.const(extent, "int32"), tirx.ForKind.PARALLEL, statement, span=span
        )
    builder.emit(statement)


def _of_base(builder: Builder, callee: str, target: ir.TensorRegion, sizes: list[int]) -> ir.TensorRegion:
    """The block of a tensor that a block of its view is. Raises Unsupported where it has another shape there."""
    base = builder.views.base_of(target.source)
    base_region = builder.views.of_base(target)
    if base_region is None or [extent for extent in extents(base_region) if extent != 1] != [
        size for size in sizes if size != 1
    ]:
        raise Unsupported(
            "L006",
            f"{callee} of a block of {target.source.name}, over the memory of {base.name} {tuple(shape_of(base))}: it "
            f"is "
            f"not a block of {' x '.join(map(str, sizes))} elements there",
            hint=f"update {base.name} in its own shape, block by block",
        )
    return base_region


def _places(block: ir.TensorRegion, loops: list[ir.Var], sizes: list[int]) -> tuple[ir.Expr, ...]:
    """The indices of an element of a block, one loop for each axis of more than one element."""
    indices: list[ir.Expr] = []
    waiting = list(loops if sizes != [1] else [])
    for axis_range in block.region:
        low = axis_range.min
        if constant(axis_range.extent) != 1:
            loop = waiting.pop(0)
            low = loop if constant(low) == 0 else low + loop
        indices.append(low)
    return tuple(indices)
