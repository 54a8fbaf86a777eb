"""Tensors and blocks of another shape over the memory of one: their elements and regions as those of the base itself.

A region of a block that is no such region of its base is copied: to a block of its own where an operation reads it, and
from one where it stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import identity
from ttexplore.ir.build import allocation, number_of, parallel_loops, whole_region
from ttexplore.ir.dag import nodes_of, replaced, with_parts
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.sizes import extents_of


class Views:
    """The views of one kernel, and the tensors and blocks that they are of."""

    def __init__(self) -> None:
        self._bases: dict[int, tuple[tirx.Buffer, tirx.Buffer]] = {}

    def add(self, view: tirx.Buffer, base: tirx.Buffer) -> None:
        """Make a buffer a view of another one. Raises KernelError where dtypes or sizes differ, Unsupported for
        T.dynamic sizes."""
        base = self.base_of(base)
        shapes = [_shape(one) for one in (view, base)]
        if view.ty.dtype != base.ty.dtype or math.prod(shapes[0]) != math.prod(shapes[1]):
            raise KernelError(
                "K002",
                f"a tensor of {shapes[0]} {view.ty.dtype.dtype} over the memory of {base.name}, which is {shapes[1]} "
                f"{base.ty.dtype.dtype}",
                hint="give both the same dtype and number of elements",
            )
        self._bases[identity(view)] = (view, base)

    def base_of(self, buffer: tirx.Buffer) -> tirx.Buffer:
        """The buffer whose memory a view is, else the buffer itself."""
        found = self._bases.get(identity(buffer))
        return buffer if found is None else found[1]

    def based(self, statement: tirx.Stmt, named: Callable[[str], str]) -> list[tirx.Stmt]:
        """The statement with the bases in place of their views; `named` makes names of new buffers."""
        if not self._bases:
            return [statement]
        match statement:
            case tirx.BufferStore():
                value, indices = self.element(statement.value), [self.element(one) for one in statement.indices]
                base = self._bases.get(identity(statement.buffer))
                if base is not None:
                    return [tirx.BufferStore(base[1], value, _indices(*base, indices), statement.span)]
                return [tirx.BufferStore(statement.buffer, value, indices, statement.span)]
            case tirx.Bind():
                return [tirx.Bind(statement.var, self.element(statement.value), statement.span)]
            case tirx.IfThenElse():
                condition = self.element(statement.condition)
                return [tirx.IfThenElse(condition, statement.then_case, statement.else_case, statement.span)]
            case tirx.While():
                return [tirx.While(self.element(statement.condition), statement.body, statement.span)]
            case tirx.For():
                low, extent = self.element(statement.min), self.element(statement.extent)
                return [tirx.For(
                    statement.loop_var, low, extent, statement.kind, statement.body, statement.thread_binding,
                    statement.annotations, statement.step, statement.span,
                )]  # fmt: skip
            case tirx.Evaluate() if isinstance(statement.value, ir.Call):
                call = statement.value
                if call.op.name == "tl.copy" and (gathered := self._gathered(statement, call)) is not None:
                    return [gathered]
                return self._operation(statement, call, named)
            case _:
                return [statement]

    def _operation(self, statement: tirx.Stmt, call: ir.Call, named: Callable[[str], str]) -> list[tirx.Stmt]:
        """An operation on regions of bases, between copies of those that are none."""
        before: list[tirx.Stmt] = []
        after: list[tirx.Stmt] = []
        parts: list[ir.Expr] = []
        for place, part in enumerate(call.args):
            if not isinstance(part, ir.TensorRegion) or not self._is_rearranged(call.op.name, part):
                parts.append(self._argument(part))
                continue
            view, base = self._bases[identity(part.source)]
            if call.op.name not in _WRITTEN:
                raise _refusal(view, base, part, f"as an operand of T.{call.op.name[3:]}")
            shape, span = _lengths(part), statement.span
            made = allocation(named(str(view.name)), shape, str(view.ty.dtype.dtype), "local.fragment", span)
            at = [
                tirx.Var(f"i{axis}", "int32", span) if length > 1 else _number(0) for axis, length in enumerate(shape)
            ]
            theirs = [_plain(one.min + index) for one, index in zip(part.region, at, strict=True)]
            of_base = tirx.BufferLoad(base, _indices(view, base, theirs))
            before.append(made)
            is_written = place == _WRITTEN[call.op.name]
            if not is_written or not _clears(call):
                before.append(_nest(at, shape, tirx.BufferStore(made.buffer, of_base, at, span)))
            if is_written and tuple(shape) == _shape(view):
                # T.Parallel stores at its own indices, and reads at any.
                lengths = _shape(base)
                there = [tirx.Var(f"i{axis}", "int32") if one > 1 else _number(0) for axis, one in enumerate(lengths)]
                value = tirx.BufferLoad(made.buffer, _indices(base, view, there))
                after.append(_nest(there, lengths, tirx.BufferStore(base, value, there, span)))
            elif is_written:
                value = tirx.BufferLoad(made.buffer, at)
                after.append(_nest(at, shape, tirx.BufferStore(base, value, list(of_base.indices), span)))
            parts.append(whole_region(made.buffer))
        return [*before, tirx.Evaluate(with_parts(call, parts), statement.span), *after]

    def _is_rearranged(self, name: str, region: ir.TensorRegion) -> bool:
        """Whether an operation does not take a region of a block as one of its base."""
        found = self._bases.get(identity(region.source))
        if found is None or not is_on_chip(found[1]):
            return False
        try:
            of_base = _region(*found, region)
        except Unsupported:
            return True
        own, theirs = map(_lengths, (region, of_base))
        if name in ("tl.copy", "tl.fill"):
            own, theirs = ([extent for extent in one if extent != 1] for one in (own, theirs))
        return name != "tl.fill" and own != theirs

    def _gathered(self, statement: tirx.Stmt, copy: ir.Call) -> tirx.Stmt | None:
        """A copy of a block that is no block of the tensor itself, as a T.Parallel; None for other copies."""
        source, target = copy.args
        assert isinstance(source, ir.TensorRegion)
        assert isinstance(target, ir.TensorRegion)
        base = self._bases.get(identity(source.source))
        if base is None or identity(target.source) in self._bases or not is_on_chip(target.source):
            return None
        try:
            _region(*base, source)
        except Unsupported:
            pass
        else:
            return None
        into = [(axis, part) for axis, part in enumerate(target.region) if not _is_one(part.extent)]
        outof = [axis for axis, part in enumerate(source.region) if not _is_one(part.extent)]
        variables = [tirx.Var(name, "int32", statement.span) for name, _ in zip("ij", into, strict=False)]
        if not 1 <= len(into) <= 2:
            return None
        own = {axis: part.min + one for (axis, part), one in zip(into, variables, strict=True)}
        theirs = {axis: source.region[axis].min + one for axis, one in zip(outof, variables, strict=True)}
        places = [own.get(axis, part.min) for axis, part in enumerate(target.region)]
        indices = [theirs.get(axis, part.min) for axis, part in enumerate(source.region)]
        value: ir.Expr = tirx.BufferLoad(base[1], _indices(*base, indices), statement.span)
        if value.ty != target.source.ty.dtype:
            value = tirx.Cast(target.source.ty.dtype, value)
        made: tirx.Stmt = tirx.BufferStore(target.source, value, [_plain(one) for one in places], statement.span)
        for variable, (_, part) in reversed([*zip(variables, into, strict=True)]):
            made = tirx.For(
                variable, _number(0), part.extent, tirx.ForKind.PARALLEL, made, None, {}, None, statement.span
            )
        return made

    def _argument(self, part: ir.Expr) -> ir.Expr:
        if isinstance(part, ir.TensorRegion):
            base = self._bases.get(identity(part.source))
            return part if base is None else _region(*base, part)
        return self.element(part)

    def element(self, value: ir.Expr) -> ir.Expr:
        """An expression with the elements of bases in place of those of their views."""

        def load(part: ir.Expr) -> ir.Expr:
            base = self._bases.get(identity(part.source)) if isinstance(part, ir.TensorLoad) else None
            if base is None or not isinstance(part, ir.TensorLoad):
                return part
            return tirx.BufferLoad(base[1], _indices(*base, list(part.indices)), part.span)

        return replaced(value, load) if any(isinstance(one, ir.TensorLoad) for one in nodes_of(value)) else value


# The operand that each operation on blocks stores to.
_WRITTEN = {"tl.copy": 1, "tl.fill": 0, "tl.gemm": 2, "tl.reduce": 1, "tl.scan": 1}


def _clears(call: ir.Call) -> bool:
    """Whether an operation stores all elements of its target, whatever that held before."""
    given = {} if call.attrs is None else {str(name): value for name, value in call.attrs.items()}
    flag = {"tl.gemm": "clear_accum", "tl.reduce": "clear"}.get(call.op.name)
    return flag is None or bool(given.get(flag, 0))


def _nest(at: Sequence[ir.Expr], shape: Sequence[int], store: tirx.Stmt) -> tirx.Stmt:
    """T.Parallel over those indices that are variables; around the store of one element it makes one turn."""
    found = [(one, length) for one, length in zip(at, shape, strict=True) if isinstance(one, ir.Var)]
    variables, extents = zip(*(found or [(tirx.Var("i", "int32"), 1)]), strict=True)
    return parallel_loops(variables, extents, store)


def _lengths(region: ir.TensorRegion) -> list[int]:
    return [number_of(part.extent) for part in region.region]


def _shape(tensor: tirx.Buffer) -> tuple[int, ...]:
    sizes = extents_of(tensor)
    known = tuple(one for one in sizes if isinstance(one, int))
    if len(known) < len(sizes):
        raise Unsupported(
            "L010",
            f"a tensor over the memory of another one, where {tensor.name} has T.dynamic sizes",
            hint="views need constant sizes: index the tensor in its own shape",
        )
    return known


def _is_one(extent: ir.Expr) -> bool:
    return isinstance(extent, tirx.IntImm) and int(extent.value) == 1


def _plain(index: ir.Expr) -> ir.Expr:
    return sym.Analyzer().simplify(index)


def _number(value: int) -> ir.Expr:
    return tirx.const(value, "int32")


def _split(flat: ir.Expr, lengths: Sequence[int]) -> list[ir.Expr]:
    """The indices along axes of these lengths of an element with a number."""
    found: list[ir.Expr] = []
    for place, length in enumerate(lengths):
        step = math.prod(lengths[place + 1 :])
        index = tirx.floordiv(flat, _number(step)) if step > 1 else flat
        # Numbers beyond the tensor stay beyond it along its first axis.
        found.append(sym.Analyzer().simplify(tirx.floormod(index, _number(length)) if place else index))
    return found


def _joined(indices: Sequence[ir.Expr], lengths: Sequence[int]) -> ir.Expr:
    flat: ir.Expr = _number(0)
    for index, length in zip(indices, lengths, strict=True):
        flat = flat * _number(length) + index
    return sym.Analyzer().simplify(flat)


def _indices(view: tirx.Buffer, base: tirx.Buffer, indices: list[ir.Expr]) -> list[ir.Expr]:
    found: list[ir.Expr] = []
    for of_view, of_base in _groups(_shape(view), _shape(base)):
        own = [indices[axis] for axis in of_view]
        flat = _joined(own, [_shape(view)[axis] for axis in of_view])
        found += own if len(of_base) == 1 == len(own) else _split(flat, [_shape(base)[axis] for axis in of_base])
    return found


def _groups(view: tuple[int, ...], base: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The axes of a view and of its base that hold the same elements, from the first to the last."""
    found: list[tuple[list[int], list[int]]] = []
    left, right = len(view), len(base)
    while left or right:
        a, b = ([left - 1] if left else []), ([right - 1] if right else [])
        left, right = left - len(a), right - len(b)
        while math.prod(view[x] for x in a) != math.prod(base[x] for x in b):
            if math.prod(view[x] for x in a) < math.prod(base[x] for x in b):
                left -= 1
                a.insert(0, left)
            else:
                right -= 1
                b.insert(0, right)
        found.insert(0, (a, b))
    return found


def _region(view: tirx.Buffer, base: tirx.Buffer, region: ir.TensorRegion) -> ir.TensorRegion:
    """The region of a tensor that a region of its view is. Raises Unsupported where it is none."""
    shapes = _shape(view), _shape(base)
    ranges: list[ir.Range] = []
    for of_view, of_base in _groups(*shapes):
        parts = [region.region[axis] for axis in of_view]
        lengths = [shapes[1][axis] for axis in of_base]
        if len(of_base) == 1 == len(of_view):
            ranges += parts
            continue
        start = _joined([part.min for part in parts], [shapes[0][axis] for axis in of_view])
        count = _run(view, region, of_view)
        found: list[ir.Range] = []
        for place in reversed(range(len(lengths))):
            length = lengths[place]
            if place and count > 1 and count % length == 0 and _is_multiple(start, length):
                found.insert(0, ir.Range.from_min_extent(_number(0), _number(length)))
                count //= length
            elif not place or count == 1 or (length % count == 0 and _is_multiple(start, count)):
                index = tirx.floormod(start, _number(length)) if place else start
                found.insert(0, ir.Range.from_min_extent(sym.Analyzer().simplify(index), _number(count)))
                count = 1
            else:
                raise _refusal(view, base, region, f"{count} of {length} elements")
            start = sym.Analyzer().simplify(tirx.floordiv(start, _number(length)))
        ranges += found
    return tirx.BufferRegion(base, ranges)


def _run(view: tirx.Buffer, region: ir.TensorRegion, axes: Sequence[int]) -> int:
    """How many elements, one after another, a region has along some axes of a view."""
    count, is_open = 1, False
    for axis in axes:
        extent = region.region[axis].extent
        if not isinstance(extent, tirx.IntImm):
            raise _refusal(view, view, region, "a size that is only known when the kernel runs")
        if is_open and int(extent.value) != _shape(view)[axis]:
            raise _refusal(view, view, region, "several parts")
        is_open = is_open or int(extent.value) > 1
        count *= int(extent.value)
    return count


def _is_multiple(value: ir.Expr, unit: int) -> bool:
    return bool(sym.Analyzer().can_prove(tirx.EQ(tirx.floormod(value, _number(unit)), _number(0))))


def _refusal(view: tirx.Buffer, base: tirx.Buffer, region: ir.TensorRegion, why: str) -> Unsupported:
    where = ", ".join(f"{part.min}:{sym.Analyzer().simplify(part.min + part.extent)}" for part in region.region)
    return Unsupported(
        "L006",
        f"{view.name}[{where}], over the memory of {base.name} {_shape(base)}: it would begin or end inside of a row, "
        f"with {why}",
        hint="choose blocks that divide the last axes of the tensor itself, or that are multiples of them",
    )
