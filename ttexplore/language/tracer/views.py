"""Tensors and blocks of another shape over the memory of one: their elements and regions as those of the base itself.

A region that is no such region of its base is copied: to a block of its own where an operation reads it, and from one
where it stores. Elements of a tensor are then gathered, and stored in pieces that are regions of the tensor.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import call, identity
from ttexplore.ir.arithmetic.sizes import constant_extents, extents_of
from ttexplore.ir.build import allocation, loop, number_of, parallel_loops, when, whole_region
from ttexplore.ir.dag import nodes_of, replaced, with_parts
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.copies import is_block_of
from ttexplore.ops import language as tl

# Makes names of new buffers.
Names = Callable[[str], str]


class Views:
    """The views of one kernel, and the tensors and blocks that they are of. `known` gives what is known, at a
    statement, of the names and loops around."""

    def __init__(self, make_analyzer: Callable[[], sym.Analyzer]) -> None:
        self._bases: dict[int, _View] = {}
        self._known = make_analyzer

    def add(self, view: tirx.Buffer, base: tirx.Buffer) -> None:
        """Make a buffer a view of another one. Raises KernelError where dtypes or sizes differ, Unsupported for
        T.dynamic sizes."""
        base = self.base_of(base)
        shapes = [_shape(buffer) for buffer in (view, base)]
        if view.ty.dtype != base.ty.dtype or math.prod(shapes[0]) != math.prod(shapes[1]):
            raise KernelError(
                "K002",
                f"a tensor of {shapes[0]} {view.ty.dtype.dtype} over the memory of {base.name}, which is {shapes[1]} "
                f"{base.ty.dtype.dtype}",
                hint="give both the same dtype and number of elements",
            )
        self._bases[identity(view)] = _View(view, base)

    def base_of(self, buffer: tirx.Buffer) -> tirx.Buffer:
        """The buffer whose memory a view is, else the buffer itself."""
        view = self._bases.get(identity(buffer))
        return buffer if view is None else view.base

    def of_base(self, region: ir.TensorRegion) -> ir.TensorRegion | None:
        """The region of a base that has the elements of a region of its view, in some shape; None where none has."""
        view = self._bases.get(identity(region.source))
        try:
            return region if view is None else view.region(region, self._known())
        except Unsupported:
            return None

    def based(self, statement: tirx.Stmt, named: Names) -> list[tirx.Stmt]:
        """The statement with the bases in place of their views; `named` makes names of new buffers."""
        if not self._bases:
            return [statement]
        match statement:
            case tirx.BufferStore():
                value, indices = self.element(statement.value), [self.element(index) for index in statement.indices]
                view = self._bases.get(identity(statement.buffer))
                if view is not None:
                    base_indices = view.indices(indices, self._known(), stores=not is_on_chip(view.base))
                    return [tirx.BufferStore(view.base, value, base_indices, statement.span)]
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
                placed = [self._placed(argument) for argument in call.args]
                return self._operation(statement, call, placed, named)
            case _:
                return [statement]

    def _placed(self, operand: ir.Expr) -> ir.Expr:
        """An operand whose places are elements of bases, where they were those of views."""
        if not isinstance(operand, ir.TensorRegion):
            return self.element(operand)
        return tirx.BufferRegion(operand.source, [
            ir.Range.from_min_extent(self.element(axis_range.min), self.element(axis_range.extent))
            for axis_range in operand.region
        ])  # fmt: skip

    def element(self, value: ir.Expr) -> ir.Expr:
        """An expression with the elements of bases in place of those of their views."""

        def load(node: ir.Expr) -> ir.Expr:
            view = self._bases.get(identity(node.source)) if isinstance(node, ir.TensorLoad) else None
            if view is None or not isinstance(node, ir.TensorLoad):
                return node
            return tirx.BufferLoad(view.base, view.indices(list(node.indices), self._known()), node.span)

        return replaced(value, load) if any(isinstance(node, ir.TensorLoad) for node in nodes_of(value)) else value

    def _operation(
        self, statement: tirx.Stmt, call: ir.Call, operands: list[ir.Expr], named: Names
    ) -> list[tirx.Stmt]:  # fmt: skip
        """An operation on regions of bases, between copies of those that are none."""
        before: list[tirx.Stmt] = []
        after: list[tirx.Stmt] = []
        new_operands: list[ir.Expr] = []
        name = call.op.name
        for number, operand in enumerate(operands):
            view = self._bases.get(identity(operand.source)) if isinstance(operand, ir.TensorRegion) else None
            if view is None or not isinstance(operand, ir.TensorRegion):
                new_operands.append(operand)
                continue
            counterpart = operands[1 - number] if name == tl.COPY.name else None
            region = self._region(view, operand, name, counterpart)
            if region is not None:
                new_operands.append(region)
                continue
            if name not in tl.BLOCKS:
                raise view.refusal(operand, f"as an operand of T.{name[3:]}")
            moved = _Moved(view, operand, statement, named, self._known())
            is_written = number == tl.BLOCKS[name].target
            if not is_on_chip(view.base) and name == tl.FILL.name:
                return moved.filled(call, operands[1])
            if not is_on_chip(view.base) and isinstance(counterpart, ir.TensorRegion) and self._is_block(counterpart):
                return moved.stored(counterpart) if is_written else moved.loaded(counterpart)
            block = moved.allocated(constant_extents(operand))
            before.append(block)
            if not is_written or not _clears(call):
                before += moved.loaded(whole_region(block.buffer))
            if is_written:
                after += moved.stored(whole_region(block.buffer))
            new_operands.append(whole_region(block.buffer))
        return [*before, tirx.Evaluate(with_parts(call, new_operands), statement.span), *after]

    def _is_block(self, region: ir.TensorRegion) -> bool:
        return is_on_chip(region.source) and identity(region.source) not in self._bases

    def _region(
        self, view: _View, region: ir.TensorRegion, name: str, counterpart: ir.Expr | None
    ) -> ir.TensorRegion | None:  # fmt: skip
        """The region of the base that an operation can take in place of one of its view; None where there is none."""
        try:
            of_base = view.region(region, self._known())
        except Unsupported:
            return None
        view_extents, theirs = constant_extents(region), constant_extents(of_base)
        if is_on_chip(view.base):
            if name in (tl.COPY.name, tl.FILL.name):
                view_extents, theirs = ([extent for extent in shape if extent != 1] for shape in (view_extents, theirs))
            return of_base if name == tl.FILL.name or view_extents == theirs else None
        if isinstance(counterpart, ir.TensorRegion) and is_on_chip(counterpart.source):
            return of_base if is_block_of(theirs, constant_extents(counterpart)) else None
        return (
            of_base if view_extents == theirs or (name == tl.COPY.name and is_block_of(theirs, view_extents)) else None
        )


# Elements of a view are numbered in int32, also those of a block that ends beyond them.
_MOST_ELEMENTS = 1 << 30

# The operand that each operation on blocks stores to.


def _clears(call: ir.Call) -> bool:
    """Whether an operation stores all elements of its target, whatever that held before."""
    attributes = {} if call.attrs is None else {str(name): value for name, value in call.attrs.items()}
    flag = tl.BLOCKS[str(call.op.name)].overwrites
    return not flag or bool(attributes.get(flag, 0))


class _View:
    """A buffer of another shape over the memory of another one, its base. `groups` are the axes of both that hold the
    same elements, from the first to the last."""

    def __init__(self, buffer: tirx.Buffer, base: tirx.Buffer) -> None:
        self.buffer, self.base = buffer, base
        self.shape, self.base_shape = _shape(buffer), _shape(base)
        self.groups = _groups(self.shape, self.base_shape)
        for view_axes, theirs in self.groups:
            count = math.prod(self.shape[axis] for axis in view_axes)
            if count > _MOST_ELEMENTS and not len(view_axes) == 1 == len(theirs):
                raise Unsupported(
                    "L015",
                    f"a tensor of {self.shape} over the memory of {base.name} {self.base_shape}: {count:,} elements "
                    "lie along axes that have other lengths in both, and their numbers are int32",
                    hint="keep the first axes as they are, or index the tensor in its own shape",
                )
        # Beyond its end, such an axis of the view goes on where the elements of the next index are: beyond that of a
        # group's first one is beyond the base.
        self.inner = [axis for view_axes, theirs in self.groups for axis in (view_axes[1:] if theirs else view_axes)]

    def indices(
        self, indices: Sequence[ir.Expr], analyzer: sym.Analyzer, *, stores: bool = False
    ) -> list[ir.Expr]:  # fmt: skip
        """The indices of an element of the base: outside of it for one that may be outside of the view. Raises
        Unsupported for such an element of a tensor that is stored to."""
        base_indices: list[ir.Expr] = []
        for view_axes, theirs in self.groups:
            if len(view_axes) == 1 == len(theirs):
                base_indices.append(indices[view_axes[0]])
                continue
            flat = _joined([indices[axis] for axis in view_axes], [self.shape[axis] for axis in view_axes], analyzer)
            base_indices += _split(flat, [self.base_shape[axis] for axis in theirs], analyzer)
        tests: list[ir.Expr] = []
        for axis in self.inner:
            missing = _unproved(indices[axis], 1, self.shape[axis], analyzer)
            if missing and stores:
                raise Unsupported(
                    "L003",
                    f"{self.buffer.name}[{', '.join(map(str, indices))}] is stored to, and may be past the "
                    f"{self.shape[axis]} elements of axis {axis}: over the memory of {self.base.name} "
                    f"{self.base_shape}, other elements follow there",
                    hint="T.copy a block to the view: what is past its end is not stored",
                )
            tests += missing
        if tests:
            base_indices[0] = tirx.Select(functools.reduce(tirx.And, tests), base_indices[0], _number(-1))
        return base_indices

    def region(
        self, region: ir.TensorRegion, analyzer: sym.Analyzer, tested: Sequence[int] = ()
    ) -> ir.TensorRegion:  # fmt: skip
        """The region of the base that a region of the view is; `tested` are axes along which it is known to lie in the
        view. Raises Unsupported where it is none."""
        extents = constant_extents(region)
        for axis in self.inner:
            axis_range = region.region[axis]
            if axis not in tested and _unproved(axis_range.min, extents[axis], self.shape[axis], analyzer):
                raise self.refusal(region, f"some beyond the {self.shape[axis]} elements of axis {axis}")
        ranges: list[ir.Range] = []
        for view_axes, theirs in self.groups:
            axis_ranges = [region.region[axis] for axis in view_axes]
            lengths = [self.base_shape[axis] for axis in theirs]
            if len(theirs) == 1 == len(view_axes):
                ranges += axis_ranges
                continue
            start = _joined(
                [axis_range.min for axis_range in axis_ranges], [self.shape[axis] for axis in view_axes], analyzer
            )
            count = self._run(region, view_axes)
            base_ranges: list[ir.Range] = []
            for position in reversed(range(len(lengths))):
                length = lengths[position]
                if position and count > 1 and count % length == 0 and _is_multiple(start, length, analyzer):
                    base_ranges.insert(0, ir.Range.from_min_extent(_number(0), _number(length)))
                    count //= length
                elif not position or count == 1 or (length % count == 0 and _is_multiple(start, count, analyzer)):
                    index = tirx.floormod(start, _number(length)) if position else start
                    base_ranges.insert(0, ir.Range.from_min_extent(analyzer.simplify(index), _number(count)))
                    count = 1
                else:
                    raise self.refusal(region, f"{count} of {length} elements")
                start = analyzer.simplify(tirx.floordiv(start, _number(length)))
            ranges += base_ranges
        return tirx.BufferRegion(self.base, ranges)

    def _run(self, region: ir.TensorRegion, axes: Sequence[int]) -> int:
        """How many elements, one after another, a region has along some axes of the view."""
        count, is_open = 1, False
        for axis in axes:
            extent = number_of(region.region[axis].extent)
            if is_open and extent != self.shape[axis]:
                raise self.refusal(region, "several parts")
            is_open = is_open or extent > 1
            count *= extent
        return count

    def refusal(self, region: ir.TensorRegion, why: str) -> Unsupported:
        where = ", ".join(
            f"{axis_range.min}:{sym.Analyzer().simplify(axis_range.min + axis_range.extent)}"
            for axis_range in region.region
        )
        return Unsupported(
            "L006",
            f"{self.buffer.name}[{where}], over the memory of {self.base.name} {self.base_shape}: it would begin or "
            f"end inside of a row, with {why}",
            hint="choose blocks that divide the last axes of the tensor itself, or that are multiples of them",
        )


@dataclass(frozen=True)
class _Moved:
    """The loads and stores of a region of a view that is no region of its base, for a statement."""

    view: _View
    region: ir.TensorRegion
    statement: tirx.Stmt
    named: Names
    known: sym.Analyzer

    def allocated(self, shape: Sequence[int]) -> tirx.AllocBuffer:
        buffer = self.view.buffer
        return allocation(
            self.named(str(buffer.name)), shape, str(buffer.ty.dtype.dtype), "local.fragment", self.statement.span
        )

    def loaded(self, target: ir.TensorRegion) -> list[tirx.Stmt]:
        """The statements that copy the region to a block, or a part of one."""
        extents = constant_extents(target)
        if is_on_chip(self.view.base) or len(extents) < 3:
            return [self._nest(target, extents, self._element)]
        # Elements of tensors are gathered to rows and columns.
        rows = self.allocated((math.prod(extents[:-1]), extents[-1]))
        rows_region = whole_region(rows.buffer)
        shape = constant_extents(rows_region)
        moved = self._nest(
            target, shape, lambda flat: tirx.BufferLoad(rows.buffer, _split(flat, shape, self.known))
        )  # fmt: skip
        return [rows, self._nest(rows_region, shape, self._element), moved]

    def _element(self, flat: ir.Expr) -> ir.Expr:
        """An element of the region, by its number there."""
        offsets = _split(flat, constant_extents(self.region), self.known)
        view_indices = [
            self.known.simplify(axis_range.min + index)
            for axis_range, index in zip(self.region.region, offsets, strict=True)
        ]
        return tirx.BufferLoad(self.view.base, self.view.indices(view_indices, self.known), self.statement.span)

    def _nest(
        self, target: ir.TensorRegion, shape: Sequence[int], value: Callable[[ir.Expr], ir.Expr]
    ) -> tirx.Stmt:  # fmt: skip
        """T.Parallel over a shape, which stores the elements of a block or a part of one, by their numbers there."""
        at = _variables(shape, self.known)
        flat = _joined(at, shape, self.known)
        element = value(flat)
        if element.ty != target.source.ty.dtype:
            element = tirx.Cast(target.source.ty.dtype, element)
        offsets = _split(flat, constant_extents(target), self.known)
        indices = [
            self.known.simplify(axis_range.min + index)
            for axis_range, index in zip(target.region, offsets, strict=True)
        ]
        return _nest(at, shape, tirx.BufferStore(target.source, element, indices, self.statement.span))

    def stored(self, source: ir.TensorRegion) -> list[tirx.Stmt]:
        """The statements that copy a block, or a part of one, to the region."""
        if is_on_chip(self.view.base):
            return [self._stored_on_chip(source)]
        return self._in_pieces(lambda piece: piece.copied(self, source))

    def _stored_on_chip(self, source: ir.TensorRegion) -> tirx.Stmt:
        view, extents = self.view, constant_extents(self.region)
        if tuple(extents) == view.shape:
            # T.Parallel stores at its own indices, and reads at any.
            return self._nest(
                whole_region(view.base), view.base_shape,
                lambda flat: tirx.BufferLoad(source.source, _split(flat, extents, self.known)),
            )  # fmt: skip
        at = _variables(extents, self.known)
        view_indices = [
            self.known.simplify(axis_range.min + index)
            for axis_range, index in zip(self.region.region, at, strict=True)
        ]
        value = tirx.BufferLoad(source.source, at)
        store = tirx.BufferStore(view.base, value, view.indices(view_indices, self.known), self.statement.span)
        return _nest(at, extents, store)

    def filled(self, fill: ir.Call, value: ir.Expr) -> list[tirx.Stmt]:
        """The statements that fill the region with a value."""
        return self._in_pieces(
            lambda piece: [tirx.Evaluate(with_parts(fill, [piece.of_base, value]), self.statement.span)]
        )

    def _in_pieces(self, body: Callable[[_Piece], list[tirx.Stmt]]) -> list[tirx.Stmt]:
        """Loops over pieces of the region, each a block of the base. What lies outside of the view is left out."""
        piece = self._piece()
        statements: list[tirx.Stmt] = body(piece)
        if piece.tests:
            statements = [when(functools.reduce(tirx.And, piece.tests), statements, self.statement.span)]
        for variable, count in reversed(piece.loops):
            statements = [loop(variable, count, statements, span=self.statement.span)]
        return statements

    def _piece(self) -> _Piece:
        """The largest pieces that are blocks of the base."""
        extents = constant_extents(self.region)
        sizes: list[list[int]] = []
        for axis, (axis_range, extent) in enumerate(zip(self.region.region, extents, strict=True)):
            length, units = self.view.shape[axis], [n for n in range(extent, 0, -1) if extent % n == 0]
            if axis in self.view.inner and _unproved(axis_range.min, extent, length, self.known):
                # Each piece lies either in the view or outside of it.
                units = [n for n in units if length % n == 0 and _is_multiple(axis_range.min, n, self.known)]
            sizes.append(units)
        best: _Piece | None = None
        for size in sorted(itertools.product(*sizes), key=math.prod, reverse=True):
            if best is not None and (math.prod(size) < math.prod(best.extents)):
                break
            piece = self._pieces(size)
            if piece is not None and (best is None or piece.is_plain):
                best = piece
            if best is not None and best.is_plain:
                break
        assert best is not None, "single elements are regions"
        return best

    def _pieces(self, size: Sequence[int]) -> _Piece | None:
        """The region in pieces of a size; None where these are no blocks of the base."""
        ranges: list[ir.Range] = []
        loops: list[tuple[ir.Var, int]] = []
        tests: list[ir.Expr] = []
        tested: list[int] = []
        for axis, (axis_range, extent) in enumerate(
            zip(self.region.region, constant_extents(self.region), strict=True)
        ):
            low, length = axis_range.min, self.view.shape[axis]
            if size[axis] < extent:
                variable = tirx.Var(f"piece{axis}", "int32", self.statement.span)
                self.known.bind(variable, ir.Range.from_min_extent(_number(0), _number(extent // size[axis])))
                loops.append((variable, extent // size[axis]))
                low = low + variable * size[axis]
            if axis in self.view.inner and (missing := _unproved(low, size[axis], length, self.known)):
                tests += missing
                tested.append(axis)
            ranges.append(ir.Range.from_min_extent(low, _number(size[axis])))
        try:
            of_base = self.view.region(tirx.BufferRegion(self.view.buffer, ranges), self.known, tested)
        except Unsupported:
            return None
        if len(_long(constant_extents(of_base))) > 2:
            return None
        return _Piece(tuple(size), of_base, tuple(loops), tuple(tests))


@dataclass(frozen=True)
class _Piece:
    """A part of a region of a view, by its extents and as a region of the base, in loops over all of them."""

    extents: tuple[int, ...]
    of_base: ir.TensorRegion
    loops: tuple[tuple[ir.Var, int], ...]
    tests: tuple[ir.Expr, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is a block of the same shape in both."""
        return _long(self.extents) == _long(constant_extents(self.of_base))

    def copied(self, moved: _Moved, source: ir.TensorRegion) -> list[tirx.Stmt]:
        """The statements that copy the piece from the block, or part of one, that is stored to the region."""
        region, view_extents = moved.region, constant_extents(moved.region)
        divided = [axis for axis, extent in enumerate(view_extents) if extent != self.extents[axis]]
        offsets = dict(zip(divided, self.loops, strict=True))
        starts = [
            (offsets[axis][0] * self.extents[axis] if axis in offsets else _number(0), self.extents[axis])
            for axis, extent in enumerate(view_extents) if extent != 1
        ]  # fmt: skip
        waiting = iter(starts)
        ranges: list[ir.Range] = []
        for axis_range in source.region:
            start, extent = (_number(0), 1) if number_of(axis_range.extent) == 1 else next(waiting)
            low = moved.known.simplify(axis_range.min + start)
            ranges.append(ir.Range.from_min_extent(low, _number(extent)))
        block = tirx.BufferRegion(source.source, ranges)
        span = moved.statement.span
        statements: list[tirx.Stmt] = []
        if not is_block_of(constant_extents(self.of_base), constant_extents(block)):
            shape = _long(constant_extents(self.of_base)) or [1]
            turned = allocation(
                moved.named(str(region.source.name)), shape, str(source.source.ty.dtype.dtype), "local.fragment", span
            )  # fmt: skip
            at = _variables(shape, moved.known)
            block_offsets = _split(_joined(at, shape, moved.known), constant_extents(block), moved.known)
            value = tirx.BufferLoad(source.source, [
                moved.known.simplify(axis_range.min + index) for axis_range,
                index in zip(block.region, block_offsets, strict=True)
            ])  # fmt: skip
            statements += [turned, _nest(at, shape, tirx.BufferStore(turned.buffer, value, at, span))]
            block = whole_region(turned.buffer)
        return [*statements, tirx.Evaluate(call(tl.COPY.name, [block, self.of_base]), span)]


def _nest(at: Sequence[ir.Expr], shape: Sequence[int], store: tirx.Stmt) -> tirx.Stmt:
    """T.Parallel over those indices that are variables; around the store of one element it makes one turn."""
    counted = [(index, length) for index, length in zip(at, shape, strict=True) if isinstance(index, ir.Var)]
    variables, extents = zip(*(counted or [(tirx.Var("i", "int32"), 1)]), strict=True)
    return parallel_loops(variables, extents, store)


def _variables(shape: Sequence[int], analyzer: sym.Analyzer) -> list[ir.Expr]:
    """Loop variables over a shape, of which `analyzer` learns the ranges; 0 for axes of one element."""
    variables: list[ir.Expr] = []
    for axis, length in enumerate(shape):
        if length == 1:
            variables.append(_number(0))
            continue
        variable = tirx.Var(f"i{axis}", "int32")
        analyzer.bind(variable, ir.Range.from_min_extent(_number(0), _number(length)))
        variables.append(variable)
    return variables


def _long(extents: Sequence[int]) -> list[int]:
    return [extent for extent in extents if extent != 1]


def _shape(tensor: tirx.Buffer) -> tuple[int, ...]:
    sizes = extents_of(tensor)
    constant = tuple(size for size in sizes if isinstance(size, int))
    if len(constant) < len(sizes):
        raise Unsupported(
            "L010",
            f"a tensor over the memory of another one, where {tensor.name} has T.dynamic sizes",
            hint="views need constant sizes: index the tensor in its own shape",
        )
    return constant


def _number(value: int) -> ir.Expr:
    return tirx.const(value, "int32")


def _split(flat: ir.Expr, lengths: Sequence[int], analyzer: sym.Analyzer) -> list[ir.Expr]:
    """The indices along axes of these lengths of an element with a number."""
    indices: list[ir.Expr] = []
    for axis, length in enumerate(lengths):
        step = math.prod(lengths[axis + 1 :])
        index = tirx.floordiv(flat, _number(step)) if step > 1 else flat
        # Numbers beyond the tensor stay beyond it along its first axis.
        indices.append(analyzer.simplify(tirx.floormod(index, _number(length)) if axis else index))
    return indices


def _joined(indices: Sequence[ir.Expr], lengths: Sequence[int], analyzer: sym.Analyzer) -> ir.Expr:
    flat: ir.Expr = _number(0)
    for index, length in zip(indices, lengths, strict=True):
        flat = flat * _number(length) + index
    return analyzer.simplify(flat)


def _groups(view: tuple[int, ...], base: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The axes of a view and of its base that hold the same elements, from the first to the last."""
    groups: list[tuple[list[int], list[int]]] = []
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
        groups.insert(0, (a, b))
    return groups


def _unproved(low: ir.Expr, extent: int, length: int, analyzer: sym.Analyzer) -> list[ir.Expr]:
    """What is not known of a run of elements that lies within an axis of a length."""
    tests = (low >= 0, low + extent <= length)
    return [test for test in tests if not analyzer.can_prove(test)]


def _is_multiple(value: ir.Expr, unit: int, analyzer: sym.Analyzer) -> bool:
    return bool(analyzer.can_prove(tirx.EQ(tirx.floormod(value, _number(unit)), _number(0))))
