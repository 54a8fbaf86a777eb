"""Inputs for tensors whose elements decide something: such that a kernel stays inside of its tensors with them.

Only what decides is executed: names, loops, branches, and the places of copies and of elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.sizes import size_variables
from ttexplore.ir.build import (
    arguments,
    attribute,
    bound_form,
    constant,
    dtype_of,
    expressions_of,
    is_whole,
    op_name,
    regions,
    runs,
    shape_of,
)
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import certain_loads, is_on_chip, parallel_body
from ttexplore.ir.interpreter.translation import TirWriter, compiled
from ttexplore.ir.operations.atomics import ATOMIC
from ttexplore.ir.operations.quantified import Quantified
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.scalars import CHECK_READ, CHECK_WRITE

Array = NDArray[Any]
# Turns of loops of one trial, and of all of them: what takes longer is left as it was drawn.
_LARGEST_TRIAL, _LARGEST_SEARCH = 20_000, 400_000


def deciding_tensors(function: tirx.PrimFunc) -> tuple[str, ...]:
    """The tensors whose elements decide branches, lengths of loops or places, in the order of their use."""
    loads = (statement.value for statement in walk(function.body) if isinstance(statement, tirx.Bind))
    sources = (load.source for load in loads if isinstance(load, ir.TensorLoad) and not is_on_chip(load.source))
    return tuple(dict.fromkeys(str(source.name) for source in sources if "float" not in dtype_of(source)))


def valid_inputs(
    launches: Sequence[tuple[tirx.PrimFunc, tirx.PrimFunc]], sizes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]], inputs: Mapping[str, Array], seed: int,
) -> dict[str, Array]:  # fmt: skip
    """The inputs with other elements in the tensors that decide something: sorted or random numbers, such that nothing
    leaves its tensor, no two work items store to one place, and most is to be done.

    `inputs` are all inputs by name, `shapes` those of all tensors. Each launch is given twice: as it was traced, which
    says which parts of blocks it uses, and after the first pass, with names for what decides. Where nothing better is
    found, the inputs are as given. Nothing is known of a launch in which numbers of an earlier one decide.
    """
    names: list[str] = []
    kernels: list[Callable[[_Trial], None]] = []
    for traced, normal in launches:
        deciding = deciding_tensors(normal)
        if deciding and inputs.keys() >= {*deciding}:
            names += [name for name in deciding if name not in names]
            kernels += [
                kernel
                for function in (normal, traced)
                if (kernel := _decisions(function, _DecisionWriter(_index_blocks(function))))
            ]
    if not kernels:
        return dict(inputs)
    return _Search(kernels, sizes, shapes, dict(inputs)).found(names, np.random.default_rng(seed))


def check_places(
    function: tirx.PrimFunc, sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]],
    inputs: Mapping[str, Array],
) -> None:  # fmt: skip
    """Raise KernelError where elements of these inputs make two work items store to one place. `function` is a kernel
    after the first pass, `inputs` are all inputs by name. A kernel of too many turns, or in which a computed number
    decides, is left unchecked."""
    writer = _DecisionWriter(_index_blocks(function))
    kernel = _decisions(function, writer) if inputs.keys() >= {*deciding_tensors(function)} else None
    if kernel is None or not writer.scattered:
        return
    trial = _Trial(inputs, sizes, shapes)
    try:
        with np.errstate(all="ignore"):
            kernel(trial)
    except _TooLong:
        return
    for name, first, second in trial.clashes:
        if name in writer.scattered:
            blocks = " and ".join(f"block ({', '.join(map(str, item))})" for item in (first, second))
            raise KernelError(
                "K017",
                f"{blocks} both store to the same elements of {name}, where elements of a tensor say: the result "
                "depends on which comes last",
                hint=f"give each block other elements of {name}, or add to {name} with T.atomic_add",
                span=span_of(writer.scattered[name]),
            )


def _decisions(function: tirx.PrimFunc, writer: _DecisionWriter) -> Callable[[_Trial], None] | None:
    """What executes what decides of a function; None where that depends on what is computed."""
    try:
        for name, block in writer.held.items():
            writer.emit(1, f"core.blocks['{name}'] = np.zeros({shape_of(block)}, {dtype_of(block)!r})")
        for size in size_variables(function):
            writer.emit(1, f"{writer.name(size)} = core.sizes['{size.name}']")
        writer.body(function.body, 1)
    except Unsupported:
        return None
    return compiled("\n".join(["def kernel(core):", *writer.lines]), "what decides", writer.constants)


def _index_blocks(function: tirx.PrimFunc) -> dict[str, tirx.Buffer]:
    """The blocks that only ever hold parts of tensors of integers, by name."""
    blocks: dict[str, tirx.Buffer] = {}
    excluded: set[str] = set()
    for statement in walk(function.body):
        if isinstance(statement, tirx.BufferStore):
            excluded.add(str(statement.buffer.name))
        if not isinstance(statement, tirx.Evaluate) or not op_name(statement):
            continue
        used = [argument for argument in arguments(statement) if isinstance(argument, ir.TensorRegion)]
        if runs(statement, tl.COPY):
            source, target = used
            extents = [constant(axis.extent) for axis in source.region]
            if (
                is_on_chip(target.source)
                and is_whole(target)
                and not is_on_chip(source.source)
                and "int" in dtype_of(source.source)
                and dtype_of(source.source) == dtype_of(target.source)
                and None not in extents
                and math.prod(filter(None, extents)) == math.prod(shape_of(target.source))
            ):
                blocks[str(target.source.name)] = target.source
                continue
            used = [target]
        excluded |= {str(region.source.name) for region in used}
    return {name: block for name, block in blocks.items() if name not in excluded}


class _DecisionWriter(TirWriter):
    """Writes what decides of a function, for a `_Trial`. Raises Unsupported where that depends on anything else."""

    def __init__(self, blocks: dict[str, tirx.Buffer]) -> None:
        super().__init__()
        # The blocks whose elements are those of a tensor.
        self.held = blocks
        self.launched: list[str] = []
        self.unknown: set[ir.Var] = set()
        # The names that depend on elements of tensors.
        self.decided: set[ir.Var] = set()
        # The first statement that stores to a tensor where elements of tensors say.
        self.scattered: dict[str, tirx.Stmt] = {}

    def elements_of(self, block: Quantified) -> str:
        if not self.is_known(block.source):
            raise Unsupported("L010", "a decision by what is computed", hint="give the inputs")
        return f"core.part_of('{block.source.name}', {self.places_of(block)})"

    def expression(self, e: ir.Expr) -> str:
        if isinstance(e, ir.TensorLoad) and self.is_known(e.source):
            word = "numbers" if self.in_parallel else "number"
            return f"core.{word}('{e.source.name}', ({', '.join(map(self.expression, e.indices))},))"
        if (isinstance(e, ir.Var) and e in self.unknown) or isinstance(e, ir.TensorLoad):
            raise Unsupported("L010", "a decision by what is computed", hint="give the inputs")
        return super().expression(e)

    def body(self, body: tirx.Stmt, depth: int) -> None:
        super().body(body, depth)
        # Most statements decide nothing, and leave no line.
        if self.lines and self.lines[-1].endswith(":"):
            self.emit(depth, "pass")

    def is_known(self, source: tirx.Buffer) -> bool:
        return str(source.name) in self.held if is_on_chip(source) else "float" not in dtype_of(source)

    def statement(self, s: tirx.Stmt, depth: int) -> None:
        match s:
            case tirx.Bind() if (form := bound_form(s)) is not None:
                if form.op in (CHECK_READ, CHECK_WRITE):
                    self.emit(depth, f"core.hold({self.given(s)[0]})")
                else:
                    self.unknown.add(s.var)
            case tirx.Bind():
                self.elements(s, depth)
                self.bind(s, depth)
            case tirx.BufferStore():
                self.elements(s, depth)
            case tirx.For() if s.kind == tirx.ForKind.PARALLEL:
                self.nest(s, depth)
            case tirx.For():
                low = self.expression(s.min)
                variable = self.name(s.loop_var)
                self.emit(depth, f"for {variable} in range({low}, {low} + {self.expression(s.extent)}):")
                if s.kind == tirx.ForKind.THREAD_BINDING:
                    self.launched.append(variable)
                    self.emit(depth + 1, f"core.item = ({', '.join(self.launched)},)")
                self.emit(depth + 1, "core.turn()")
                self.body(s.body, depth + 1)
                self.launched = [launched for launched in self.launched if launched != variable]
            case tirx.While():
                raise Unsupported("L010", "a decision by what changes in a loop", hint="give the inputs")
            case tirx.IfThenElse():
                super().statement(s, depth)
            case tirx.Evaluate() if runs(s, tl.COPY):
                # Work items may share what they update.
                ways = ("read", "read" if attribute(s, ATOMIC) else "store")
                for region, way in zip(arguments(s), ways, strict=True):
                    assert isinstance(region, ir.TensorRegion)
                    if is_on_chip(region.source):
                        self.block(region, depth)
                    else:
                        self.emit(depth, f"core.{way}{self.region(region)}")
                source, target = regions(s)
                stores = not is_on_chip(target.source) and not attribute(s, ATOMIC)
                if stores and any(self.depends(axis.min) for axis in target.region):
                    self.scattered.setdefault(str(target.source.name), s)
                if is_on_chip(target.source) and str(target.source.name) in self.held:
                    self.emit(depth, f"core.hold_part('{target.source.name}', *{self.region(source)})")
            case _:
                pass

    def depends(self, e: ir.Expr) -> bool:
        return any(isinstance(node, ir.TensorLoad) or node in self.decided for node in nodes_of(e))

    def nest(self, s: tirx.For, depth: int) -> None:
        """The elements that all turns of a T.Parallel certainly use, one axis of an array for each of its loops."""
        loops, body = parallel_body(s)
        start, checks = len(self.lines), False
        try:
            for axis, statement in enumerate(loops):
                low, extent = self.expression(statement.min), self.expression(statement.extent)
                shape = (1,) * axis + (-1,) + (1,) * (len(loops) - axis - 1)
                self.emit(depth, f"{self.name(statement.loop_var)} = {low} + np.arange({extent}).reshape({shape})")
        except Unsupported:
            body = []
        self.in_parallel = True
        for statement in body:
            checks |= self.elements(statement, depth)
            if isinstance(statement, tirx.Bind):
                self.bind(statement, depth)
        self.in_parallel = False
        if not checks:
            del self.lines[start:]

    def bind(self, s: tirx.Bind, depth: int) -> None:
        try:
            self.emit(depth, f"{self.name(s.var)} = {self.expression(s.value)}")
        except Unsupported:
            self.unknown.add(s.var)
        if self.depends(s.value):
            self.decided.add(s.var)

    def elements(self, s: tirx.Stmt, depth: int) -> bool:
        """Elements of a block whose places depend on elements of tensors have to lie in it; whether there are any."""
        if not isinstance(s, tirx.Bind | tirx.BufferStore):
            return False
        used = [(load.source, load.indices) for value in expressions_of(s) for load in certain_loads(value)]
        if isinstance(s, tirx.BufferStore):
            used.append((s.buffer, s.indices))
        checks = False
        for block, indices in used:
            if not is_on_chip(block) or not any(map(self.depends, indices)):
                continue
            try:
                index_texts = ", ".join(map(self.expression, indices))
            except Unsupported:
                continue
            self.emit(depth, f"core.element({shape_of(block)}, ({index_texts},))")
            checks = True
        return checks

    def block(self, region: ir.TensorRegion, depth: int) -> None:
        """A part of a block on the chip has to lie in it."""
        if not is_whole(region):
            self.emit(depth, f"core.part({shape_of(region.source)}, {self.region(region)}[1])")


class _TooLong(Exception):
    """A trial has more turns than it may have."""


@dataclass
class _Trial:
    """One execution of what decides. `faults` are places outside of tensors or blocks, and places that two work items
    store to; `inside` and `outside` are the blocks that begin in their tensors and behind them, each once, and `moved`
    counts those inside however often they are moved. `blocks` are those that hold a part of a tensor of integers."""

    arrays: Mapping[str, Array]
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    item: tuple[int, ...] = ()
    turns: int = 0
    faults: int = 0
    moved: int = 0
    inside: set[object] = field(default_factory=set[object])
    outside: set[object] = field(default_factory=set[object])
    blocks: dict[str, Array] = field(default_factory=dict[str, Array])
    owners: dict[str, Array] = field(default_factory=dict[str, Array])
    items: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    # The tensors to which two work items store at one place, with these.
    clashes: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = field(
        default_factory=list[tuple[str, tuple[int, ...], tuple[int, ...]]]
    )

    @property
    def merit(self) -> tuple[int, ...]:
        """Larger is better: no faults first, then many blocks in their tensors."""
        return -self.faults, len(self.inside) - len(self.outside), self.moved

    def turn(self) -> None:
        self.turns += 1
        if self.turns > _LARGEST_TRIAL:
            raise _TooLong

    def hold(self, holds: bool) -> None:
        self.faults += not holds

    def number(self, name: str, indices: tuple[int, ...]) -> int:
        """An element; one of 8 bits in its own dtype, in which it wraps around."""
        array = self.array(name)
        inside = all(0 <= index < length for index, length in zip(indices, array.shape, strict=True))
        self.faults += not inside
        number = array[tuple(map(int, indices))] if inside else 0
        return number if array.itemsize == 1 else int(number)

    def numbers(self, name: str, indices: tuple[int | Array, ...]) -> Array:
        """Like :meth:`number`, for arrays of indices."""
        array = self.array(name)
        self.element(array.shape, indices)
        inside = tuple(np.clip(index, 0, length - 1) for index, length in zip(indices, array.shape, strict=True))
        return array[inside] if array.itemsize == 1 else array[inside].astype(np.int64)

    def part_of(self, name: str, indices: tuple[Array, ...]) -> Array:
        """Elements of a part of a tensor, 0 for those outside of it."""
        array = self.array(name)
        inside = [(at >= 0) & (at < length) for at, length in zip(indices, array.shape, strict=True)]
        clipped = tuple(np.clip(at, 0, length - 1) for at, length in zip(indices, array.shape, strict=True))
        return np.where(functools.reduce(np.logical_and, inside), array[clipped], array.dtype.type(0))

    def element(self, shape: tuple[int, ...], indices: tuple[int | Array, ...]) -> None:
        positions = [np.asarray(at) for at in indices]
        if all(np.all((at >= 0) & (at < length)) for at, length in zip(positions, shape, strict=True)):
            self.inside.add((shape, *(at.tobytes() for at in positions)))
        else:
            self.faults += 1

    def array(self, name: str) -> Array:
        return self.blocks[name] if name in self.blocks else self.arrays[name]

    def hold_part(self, block: str, name: str, spans: tuple[tuple[int, int], ...]) -> None:
        """What lies outside of a tensor is zero."""
        spans = _whole(spans)
        content = self.part_of(name, np.ix_(*(np.arange(start, start + extent) for start, extent in spans)))
        self.blocks[block] = content.reshape(self.blocks[block].shape)

    def part(self, shape: tuple[int, ...], spans: tuple[tuple[int, int], ...]) -> None:
        spans = _whole(spans)
        ends = (start < 0 or start + extent > length for (start, extent), length in zip(spans, shape, strict=True))
        self.faults += any(ends)

    def read(self, name: str, spans: tuple[tuple[int, int], ...]) -> None:
        spans = _whole(spans)
        inside = all(0 <= start < length for (start, _), length in zip(spans, self.shapes[name], strict=True))
        self.moved += inside
        (self.inside if inside else self.outside).add((name, spans))

    def store(self, name: str, spans: tuple[tuple[int, int], ...]) -> None:
        spans = _whole(spans)
        self.read(name, spans)
        owners = self.owners.setdefault(name, np.full(self.shapes[name], -1, np.int32))
        item_number = self.items.setdefault(self.item, len(self.items))
        owned = owners[tuple(slice(max(start, 0), max(start + extent, 0)) for start, extent in spans)]
        foreign = owned[(owned >= 0) & (owned != item_number)]
        if foreign.size:
            self.faults += 1
            self.clashes.append((name, [*self.items][int(foreign.flat[0])], self.item))
        owned[...] = item_number


def _whole(spans: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Starts and extents as numbers of Python: those of NumPy, which elements and casts are, wrap around."""
    return tuple((int(start), int(extent)) for start, extent in spans)


class _Search:
    """The search for inputs with which a kernel does much and leaves no tensor."""

    def __init__(
        self, kernels: list[Callable[[_Trial], None]], sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]],
        inputs: dict[str, Array],
    ) -> None:  # fmt: skip
        self.kernels, self.sizes, self.shapes, self.given = kernels, sizes, shapes, inputs
        self.turns = 0

    def merit(self, arrays: Mapping[str, Array]) -> tuple[int, ...] | None:
        """None for what takes too long."""
        trial = _Trial(arrays, self.sizes, self.shapes)
        try:
            # Integers wrap around, as they do when the kernel runs.
            with np.errstate(all="ignore"):
                for kernel in self.kernels:
                    # Each form of a kernel has work items of its own.
                    trial.owners.clear()
                    trial.items.clear()
                    kernel(trial)
        except _TooLong:
            return None
        finally:
            self.turns += trial.turns
        return trial.merit

    def found(self, names: list[str], random: np.random.Generator) -> dict[str, Array]:
        """Tensor by tensor, and once more, now that the others have their elements."""
        best = self.given | {name: np.zeros_like(self.given[name]) for name in names}
        for name in [*names, *names]:
            trials = [(self.merit(best | {name: candidate}), candidate) for candidate in self.candidates(name, random)]
            scored = [(merit, candidate) for merit, candidate in trials if merit is not None]
            if not scored:
                return self.given
            best[name] = max(scored, key=lambda pair: pair[0])[1]
        merit, before = self.merit(best), self.merit(self.given)
        return best if merit is not None and (before is None or merit > before) else self.given

    def candidates(self, name: str, random: np.random.Generator) -> Iterator[Array]:
        """Elements for a tensor, from what most likely does much: starts of parts that cover an axis; each place
        once; numbers below the length of an axis, and below smaller powers of two; what was drawn."""
        old = self.given[name]
        low, high = SMALL_INTEGERS.get(str(old.dtype), (-(2**31), 2**31 - 1))
        lengths = sorted({length for shape in self.shapes.values() for length in shape if length <= high}, reverse=True)
        if old.ndim == 1 and old.size > 1:
            for length in lengths:
                inner = np.sort(random.integers(0, length + 1, old.size - 2))
                yield np.concatenate([[0], inner, [length]]).astype(old.dtype)
        if 1 <= old.ndim <= 2 and old.shape[0] <= high:
            # Each place once: an order, or a list of coordinates.
            counted = np.zeros_like(old)
            counted.reshape(old.shape[0], -1)[:, -1] = np.arange(old.shape[0])
            yield counted
        bound = max(lengths, default=1)
        while bound > 1 and self.turns < _LARGEST_SEARCH:
            yield random.integers(0, bound, old.shape).astype(old.dtype)
            bound //= 2
        if low <= 0:
            yield old
            yield np.zeros_like(old)
