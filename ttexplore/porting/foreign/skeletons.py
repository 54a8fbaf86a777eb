"""Writing what a foreign kernel computes as a kernel in TileLang.

All text is made by ``writing``: templates are literals, and their fields are names and numbers that it has checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, LiteralString

from ttexplore.porting.foreign.attention import Bias
from ttexplore.porting.foreign.families import Attention, Family, Gemm, Rope, Rowwise
from ttexplore.porting.foreign.host import HostNumbers
from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.places import NOWHERE, Place, plus
from ttexplore.porting.foreign.values import (
    COLUMN,
    SCAN,
    Formula,
    Index,
    Input,
    MatMul,
    Number,
    Output,
    Reduced,
    Scalar,
    Value,
    in_order,
    is_over_row,
    parts_of,
    walk,
)
from ttexplore.porting.foreign.writing import (
    Lines,
    PythonText,
    SkeletonNames,
    applied,
    assigned,
    bare,
    code,
    comment,
    joined,
    number,
    without,
)

Rank = Literal["full", "row", "column", "number"]

_REDUCED: dict[str, tuple[LiteralString, LiteralString]] = {
    "sum": ("sums", "T.reduce_sum({source}, {target}, dim=1)"),
    "max": ("maxima", "T.reduce_max({source}, {target}, dim=1)"),
    "min": ("minima", "T.reduce_min({source}, {target}, dim=1)"),
}
_SHAPES: dict[Rank, LiteralString] = {"full": "(rows, columns)", "row": "(columns,)", "column": "(rows,)"}
_INDICES: dict[Rank, LiteralString] = {"full": "{name}[i, j]", "row": "{name}[j]", "column": "{name}[i]"}
# A value that occurs several times gets a block of its own from this number of operations on, and so does any that has
# more operations, or so many inside of each other.
_SHARED, _LARGEST, _DEEPEST = 8, 40, 12


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The text of a module with the factory of a kernel, for :func:`ttexplore.explore`. `names` are those that names of
    the source have in it, `shapes` those of its tensors, by their names in it, as products of its sizes."""

    text: str
    factory: str
    names: Mapping[str, str]
    shapes: Mapping[str, tuple[str, ...]]


def skeleton(kernel: ForeignKernel, family: Family, equal_sizes: Mapping[str, str] | None = None) -> Skeleton:
    """A kernel in TileLang. Of `equal_sizes`, which are one length in the source, each is the one that is its value."""
    names = SkeletonNames()
    module = _Module(kernel, names, names.of(kernel.name), equal_sizes or {})
    match family:
        case Gemm():
            text = _gemm(kernel, family, module)
        case Attention():
            text = _attention(family, module)
        case Rope():
            text = _rope(family, module)
        case Rowwise():
            text = _rowwise(kernel, family, module)
    of_source = {name: piece.text for name, piece in names.of_source.items()}
    return Skeleton(text, module.function.text, of_source, module.shapes)


@dataclass
class _Module:
    """A module with a factory of a kernel."""

    kernel: ForeignKernel
    names: SkeletonNames
    function: PythonText
    equal_sizes: Mapping[str, str]
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # The tensors of indices.
    indices: set[str] = field(default_factory=set[str])

    def text(
        self, summary: PythonText, parameters: PythonText, scalars: Iterable[PythonText],
        tensors: Iterable[tuple[PythonText, PythonText]], grid: PythonText, body: Iterable[PythonText],
        before: Sequence[PythonText] = (), host: HostNumbers | None = None,
    ) -> str:  # fmt: skip
        """The whole text. `before` are lines of the factory before the kernel, `host` the numbers computed there."""
        lines = Lines()
        of_host = host.factory_lines if host is not None else []
        tensors = [*tensors]
        for name, shape in tensors:
            self.shapes[name.text] = tuple(size.strip() for size in shape.text.strip("()").split(",") if size.strip())
        every = joined(", ", [without(parameters, self.equal_sizes), *scalars])
        lines.add(0, *([code("import numpy as np"), code("")] if of_host else []))
        lines.add(0, code("import ttexplore.language as T"), code(""), code(""))
        lines.add(0, code("def {name}({parameters}):", name=self.function, parameters=every))
        lines.add(1, code('"""{summary}"""', summary=summary))
        lines.add(1, *(comment(f"Only where {condition}") for condition in self.kernel.variants))
        lines.add(1, *(assigned(second, first) for second, first in self.equal_sizes.items()))
        lines.add(1, *before, *of_host, code(""), code("@T.prim_func"), code("def kernel("))
        for name, shape in tensors:
            dtype = code('"int32"') if name.text in self.indices else code("dtype")
            lines.add(2, code("{name}: T.Tensor({shape}, {dtype}),", name=name, shape=shape, dtype=dtype))
        lines.add(1, code("):"))
        lines.add(2, code("with T.Kernel({grid}:", grid=grid))
        lines.add(3, *body)
        lines.add(0, code(""))
        lines.add(1, code("return kernel"))
        return lines.text()


@dataclass
class _Blocks:
    """The writer of values: each as an expression of an element of a block, and what it needs in blocks of its own."""

    module: _Module
    width: PythonText
    leaf: Callable[[Value], PythonText | None]
    rank_of: Callable[[Value], Rank | None]
    buffers: list[PythonText] = field(default_factory=list[PythonText])
    lines: list[PythonText] = field(default_factory=list[PythonText])
    # The block of a value, and whether it has all elements and not one for each row.
    blocks: dict[Value, tuple[PythonText, bool]] = field(default_factory=dict[Value, tuple[PythonText, bool]])
    uses: dict[Value, int] = field(default_factory=dict[Value, int])
    ranks: dict[Value, Rank] = field(default_factory=dict[Value, Rank])
    # Of each expression, how many operations it has, and how many inside of each other.
    sizes: dict[Value, tuple[int, int]] = field(default_factory=dict[Value, tuple[int, int]])
    texts: dict[Value, PythonText] = field(default_factory=dict[Value, PythonText])

    def count(self, stores: Iterable[Output]) -> None:
        """Count how often each value of the stores is used."""
        for term in in_order(*(store.value for store in stores)):
            for operand in parts_of(term):
                self.uses[operand] = self.uses.get(operand, 0) + 1

    def rank(self, value: Value) -> Rank:
        """Which elements a value has one for each of."""
        for term in in_order(value, until=lambda term: term in self.ranks or self.rank_of(term) is not None):
            if term not in self.ranks:
                self.ranks[term] = self.rank_of(term) or self.rank_of_parts(term)
        return self.ranks[value]

    def rank_of_parts(self, value: Value) -> Rank:
        ranks = {self.ranks[operand] for operand in parts_of(value)}
        return "full" if ranks & {"full", "row"} else "column" if "column" in ranks else "number"

    def block(self, preferred_name: LiteralString, is_full: bool) -> PythonText:
        name = self.module.names.claim(preferred_name)
        shape = code("(block, {width})", width=self.width) if is_full else code("(block,)")
        self.buffers.append(code('{name} = T.alloc_fragment({shape}, "float32")', name=name, shape=shape))
        return name

    def fill(self, block: PythonText, value: Value, is_full: bool) -> None:
        """Compute a value into a block."""
        text = bare(self.text(value))
        if is_full:
            self.lines += [
                code("for i, j in T.Parallel(block, {width}):", width=self.width),
                code("    {block}[i, j] = {text}", block=block, text=text),
            ]
        else:
            self.lines += [code("for i in T.Parallel(block):"), code("    {block}[i] = {text}", block=block, text=text)]

    def named(self, value: Value, preferred_name: LiteralString, is_full: bool, of: Value | None = None) -> None:
        """Compute a value, or what it is made `of`, into a block of its own, which stands for it from now on."""
        block = self.block(preferred_name, is_full)
        self.fill(block, of or value, is_full)
        self.blocks[value] = block, is_full

    def prepare(self, value: Value) -> None:
        """Write what a value needs before its own loop: reductions, what is the same for a whole row, and values that
        are large and occur more than once."""
        for term in in_order(value, until=self.is_written):
            if self.is_written(term):
                self.sizes[term] = 0, 0
                continue
            operand_sizes = [self.sizes.get(operand, (0, 0)) for operand in parts_of(term)]
            size, depth = (
                1 + sum(count for count, _ in operand_sizes),
                1 + max((deep for _, deep in operand_sizes), default=0),
            )
            match term:
                case Reduced(kind, inner):
                    if not self.blocks.get(inner, (None, False))[1]:
                        self.named(inner, "elements", True)
                    self.reduce(kind, term, self.blocks[inner][0])
                case Formula(name, (inner,)) if name == SCAN:
                    self.named(term, "running_sums", True, of=inner)
                    self.lines.append(code("T.cumsum({block}, dim=1)", block=self.blocks[term][0]))
                case Formula(_, arguments):
                    for argument in arguments:
                        # A value of a row that the values of elements use.
                        is_of_row = (
                            isinstance(argument, Formula)
                            and self.rank(argument) == "column"
                            and self.rank(term) == "full"
                        )
                        if is_of_row and argument not in self.blocks:
                            self.named(argument, "row_value", False)
                    shared = self.uses.get(term, 0) > 1 and size >= _SHARED
                    if term != value and (shared or size >= _LARGEST or depth >= _DEEPEST):
                        self.named(term, "value", self.rank(term) == "full")
                        size, depth = 0, 0
                case _:
                    size, depth = 0, 0
            self.sizes[term] = size, depth

    def is_written(self, value: Value) -> bool:
        return value in self.blocks or self.leaf(value) is not None

    def reduce(self, kind: str, value: Value, source: PythonText) -> None:
        preferred_name, template = _REDUCED[kind]
        target = self.block(preferred_name, False)
        self.lines.append(code(template, source=source, target=target))
        self.blocks[value] = target, False

    def text(self, value: Value) -> PythonText:
        """A value as an expression of an element."""
        ready_text = self.known(value)
        if ready_text is not None:
            return ready_text
        texts: dict[Value, PythonText] = {}
        for term in in_order(value, until=lambda term: self.known(term) is not None):
            texts[term] = self.known(term) or _expression(term, [texts[operand] for operand in parts_of(term)])
        return texts[value]

    def known(self, value: Value) -> PythonText | None:
        if value in self.blocks:
            block, is_full = self.blocks[value]
            return code("{block}[i, j]", block=block) if is_full else code("{block}[i]", block=block)
        return self.leaf(value)


def _expression(value: Value, operands: list[PythonText]) -> PythonText:
    match value:
        case Number(real):
            return number(real)
        case Formula(name):
            return applied(name, operands)
        case _:
            raise AssertionError(f"{type(value).__name__} is no expression of elements")


def _scalars(kernel: ForeignKernel, names: SkeletonNames, values: Iterable[Value]) -> list[PythonText]:
    """The parameters that are numbers in these values, but lengths, each with its default, if it has one: the others
    must be given, by name."""
    scalar_names = dict.fromkeys(
        term.name
        for value in values
        for term in walk(value)
        if isinstance(term, Scalar) and term.name not in kernel.lengths
    )
    return _given(kernel, names, scalar_names)


def _given(kernel: ForeignKernel, names: SkeletonNames, scalar_names: Iterable[str]) -> list[PythonText]:
    """Parameters of a factory."""
    scalars = [
        code("{name}={default}", name=names.of(scalar), default=number(kernel.defaults[scalar]))
        if scalar in kernel.defaults
        else names.of(scalar)
        for scalar in scalar_names
    ]
    return [code("*"), *scalars] if scalars else []


def _dtype(kernel: ForeignKernel) -> PythonText:
    """The dtype of tensors: that of the source, where it says it, and the one with the most bits if it says several."""
    tensors = [parameter.dtype for parameter in kernel.parameters if parameter.kind == "tensor"]
    dtypes = {dtype for dtype in tensors if "float" in dtype}
    if dtypes & {"float32", "float64"} or dtypes == {"float16", "bfloat16"}:
        return code('"float32"')
    return code('"float16"') if dtypes == {"float16"} else code('"bfloat16"')


def _rank(axes: frozenset[str], two: bool) -> Rank:
    """What a tensor with these indices is: ``full``, a ``row`` that all rows share, or a ``column``."""
    if not two:
        if "r" in axes or "r0" in axes or "r1" in axes:
            return "full" if "p" in axes or not axes else "row"
        return "column" if axes else "full"
    if {"r0", "r1"} <= axes or {"x", "y"} <= axes:
        return "full"
    if axes & {"x", "y"}:
        return "row" if "x" in axes else "column"
    if "r1" in axes:
        return "row"
    if "r0" in axes:
        return "column"
    return ("column" if "p" in axes else "row") if "r" in axes else ("column" if axes else "full")


def _rowwise(kernel: ForeignKernel, family: Rowwise, module: _Module) -> str:
    """Kernels on blocks of whole rows, or kernels without reductions on any blocks."""
    stores, names = family.stores, module.names
    inputs: dict[str, Input] = {}
    for store in stores:
        for term in walk(store.value):
            if isinstance(term, Input):
                inputs.setdefault(term.tensor, term)
    # Whether the source has blocks of rows and columns.
    two = any({"r0", "r1"} <= access.axes or {"x", "y"} <= access.axes for access in (*inputs.values(), *stores))
    has_reduction = any(is_over_row(term) for store in stores for term in walk(store.value))
    width = code("columns") if has_reduction else code("block")
    offsets: dict[Rank, PythonText] = {
        "full": code("by * block, 0") if has_reduction else code("by * block, bx * block"),
        "row": code("0") if has_reduction else code("bx * block"), "column": code("by * block"),
    }  # fmt: skip
    shapes: dict[Rank, PythonText] = {
        "full": code("(block, {width})", width=width), "row": code("({width},)", width=width),
        "column": code("(block,)"),
    }  # fmt: skip
    buffers = {name: names.derived(names.of(name), "block") for name in inputs}

    def rank_of(value: Value) -> Rank | None:
        match value:
            case Input(axes=axes):
                return _rank(axes, two)
            case Reduced():
                return "column"
            case Scalar() | Number():
                return "number"
            case Index():
                return "row"
            case _:
                return None

    def leaf(value: Value) -> PythonText | None:
        match value:
            case Index():
                return code("j")
            case Input(tensor, axes):
                return code(_INDICES[_rank(axes, two)], name=buffers[tensor])
            case Scalar(name):
                # A length that indices are compared with is that of the row.
                return code("columns") if name in kernel.lengths else names.of(name)
            case _:
                return None

    host = HostNumbers(kernel, names, leaf)
    blocks = _Blocks(module, width, lambda value: leaf(value) or host.of(value), rank_of)
    blocks.count(stores)
    out: dict[str, Rank] = {}
    for store in stores:
        rank = blocks.rank(store.value)
        # Without reductions each place of a store is an element of its own, whatever they share.
        shared = rank == "number" or (not has_reduction and store.axes >= {"r0", "r1"})
        out[store.tensor] = "full" if shared else rank
    tensors: dict[str, Rank] = {name: blocks.rank(access) for name, access in inputs.items()}
    tensors |= {name: rank for name, rank in out.items() if name not in inputs}
    module.indices |= {names.of(name).text for name in _indices(inputs.values(), stores)}
    sizes = {name: names.derived(names.of(name), "rows") for name, access in inputs.items() if access.by}
    # Indices are there before what they choose.
    load: list[PythonText] = []
    for name, access in sorted(inputs.items(), key=lambda pair: pair[1].by is not None):
        rank = tensors[name]
        dtype = code('"int32"') if names.of(name).text in module.indices else code("dtype")
        blocks.buffers.append(
            code("{name} = T.alloc_shared({shape}, {dtype})", name=buffers[name], shape=shapes[rank], dtype=dtype)
        )
        if access.by is None:
            load.append(
                code("T.copy({name}[{at}], {buffer})", name=names.of(name), at=offsets[rank], buffer=buffers[name])
            )
            continue
        column = code("j") if has_reduction else code("bx * block + j")
        load += [
            code("for i, j in T.Parallel(block, {width}):", width=width),
            code(
                "    {buffer}[i, j] = {name}[{index}[i], {column}]",
                buffer=buffers[name],
                name=names.of(name),
                index=buffers[access.by.tensor],
                column=column,
            ),
        ]
    for store in stores:
        rank = out[store.tensor]
        buffer = names.derived(names.of(store.tensor), "out")
        blocks.buffers.append(code('{name} = T.alloc_fragment({shape}, "float32")', name=buffer, shape=shapes[rank]))
        blocks.prepare(store.value)
        blocks.fill(buffer, store.value, rank != "column")
        if rank != "column":
            blocks.blocks[store.value] = buffer, True
        blocks.lines.append(
            code("T.copy({buffer}, {name}[{place}])", buffer=buffer, name=names.of(store.tensor), place=offsets[rank])
        )
    summary = code("{family}, from {name}.", family=code(family.row), name=module.function)
    if has_reduction:
        summary = code("{summary} One block has whole rows.", summary=summary)
        grid = code("T.ceildiv(rows, block)) as by")
    else:
        grid = code("T.ceildiv(columns, block), T.ceildiv(rows, block)) as (bx, by)")
    of_gathered = [code("{size}=128, ", size=size) for size in sizes.values()]
    return module.text(
        summary, code(
            'rows=256, columns=256, {sizes}block=32, dtype={dtype}', sizes=joined("", of_gathered), dtype=_dtype(kernel)
        ),
        _scalars(kernel, names, (store.value for store in stores)),
        [
            (names.of(name), code("({size}, columns)", size=sizes[name]) if name in sizes else code(_SHAPES[rank]))
            for name, rank in tensors.items()
        ],
        grid, [*blocks.buffers, *load, *blocks.lines], host=host,
    )  # fmt: skip


def _indices(inputs: Iterable[Input], stores: Iterable[Output]) -> set[str]:
    """The tensors of indices: of rows, and of those that columns are compared with."""
    compared = {
        side.tensor
        for store in stores
        for term in walk(store.value)
        if isinstance(term, Formula) and COLUMN in term.arguments
        for side in term.arguments
        if isinstance(side, Input)
    }
    return compared | {access.by.tensor for access in inputs if access.by}


def _gemm(kernel: ForeignKernel, family: Gemm, module: _Module) -> str:
    names = module.names
    a, b = names.of(family.a.tensor), names.of(family.b.tensor)
    a_block, b_block = names.derived(a, "block"), names.derived(b, "block")
    transposed = family.product.transposed
    extra: dict[str, Rank] = {}
    for store in family.stores:
        for term in walk(store.value):
            if isinstance(term, Input) and term not in (family.a, family.b):
                extra[term.tensor] = _rank(term.axes, two=True)
    buffers = {name: names.derived(names.of(name), "block") for name in extra}
    shapes: dict[str, PythonText] = {
        family.a.tensor: code("(rows, depth)"),
        family.b.tensor: code("(columns, depth)") if transposed else code("(depth, columns)"),
    }
    shapes |= {name: code(_SHAPES[rank]) for name, rank in extra.items()}
    shapes |= {store.tensor: code("(rows, columns)") for store in family.stores if store.tensor not in shapes}
    block_shapes: dict[Rank, PythonText] = {
        "full": code("(block, block)"), "row": code("(block,)"), "column": code("(block,)"),
    }  # fmt: skip
    offsets: dict[Rank, PythonText] = {
        "full": code("by * block, bx * block"), "row": code("bx * block"), "column": code("by * block"),
    }  # fmt: skip
    b_shape = code("(block, block_depth)") if transposed else code("(block_depth, block)")
    b_place = code("bx * block, k * block_depth") if transposed else code("k * block_depth, bx * block")
    body = [
        code("{block} = T.alloc_shared((block, block_depth), dtype)", block=a_block),
        code("{block} = T.alloc_shared({shape}, dtype)", block=b_block, shape=b_shape),
        code('acc = T.alloc_fragment((block, block), "float32")'),
    ]
    for name, rank in extra.items():
        body.append(code("{block} = T.alloc_shared({shape}, dtype)", block=buffers[name], shape=block_shapes[rank]))
    loads = [
        code("T.copy({name}[{place}], {block})", name=names.of(name), place=offsets[rank], block=buffers[name])
        for name, rank in extra.items()
    ]
    loop = [
        code("T.clear(acc)"), code("for k in T.Pipelined(T.ceildiv(depth, block_depth), num_stages=2):"),
        code("    T.copy({a}[by * block, k * block_depth], {block})", a=a, block=a_block),
        code("    T.copy({b}[{place}], {block})", b=b, place=b_place, block=b_block),
        code("    T.gemm({a}, {b}, acc, transpose_B=True)", a=a_block, b=b_block) if transposed
        else code("    T.gemm({a}, {b}, acc)", a=a_block, b=b_block),
    ]  # fmt: skip

    def rank_of(value: Value) -> Rank | None:
        match value:
            case MatMul():
                return "full"
            case Input(tensor):
                return extra[tensor]
            case Scalar() | Number():
                return "number"
            case _:
                return None

    def leaf(value: Value) -> PythonText | None:
        match value:
            case MatMul():
                return code("acc[i, j]")
            case Input(tensor):
                return code(_INDICES[extra[tensor]], name=buffers[tensor])
            case Scalar(name):
                # The loop of a product goes over K.
                return code("depth") if name in kernel.lengths else names.of(name)
            case _:
                return None

    host = HostNumbers(kernel, names, leaf)
    blocks = _Blocks(module, code("block"), lambda value: leaf(value) or host.of(value), rank_of)
    blocks.count(family.stores)
    for store in family.stores:
        buffer = code("acc")
        if not isinstance(store.value, MatMul):
            blocks.prepare(store.value)
            if store is not family.stores[-1]:
                # Later stores are made of the product too.
                buffer = names.derived(names.of(store.tensor), "out")
                blocks.buffers.append(code('{name} = T.alloc_fragment((block, block), "float32")', name=buffer))
            blocks.fill(buffer, store.value, True)
        blocks.lines.append(
            code("T.copy({buffer}, {name}[by * block, bx * block])", buffer=buffer, name=names.of(store.tensor))
        )
    fused = any(not isinstance(store.value, MatMul) for store in family.stores)
    return module.text(
        code("GEMM with an epilogue, from {name}.", name=module.function) if fused
        else code("GEMM, from {name}.", name=module.function),
        code('rows=128, columns=128, depth=128, block=64, block_depth=32, dtype={dtype}', dtype=_dtype(kernel)),
        _scalars(kernel, names, (store.value for store in family.stores)),
        [(names.of(name), shape) for name, shape in shapes.items()],
        code("T.ceildiv(columns, block), T.ceildiv(rows, block)) as (bx, by)"),
        [*body, *blocks.buffers, *loads, *loop, *blocks.lines], host=host,
    )  # fmt: skip


def _rope(family: Rope, module: _Module) -> str:
    names = module.names
    cos, sin = names.of(family.cos), names.of(family.sin)
    cos_block, sin_block = names.derived(cos, "block"), names.derived(sin, "block")
    pairs = [(names.of(x), names.of(out)) for x, out in family.pairs]
    full_shape, half = code("(rows, 2 * half)"), code("(rows, half)")
    tensors = {x: full_shape for x, _ in pairs} | {cos: half, sin: half} | {out: full_shape for _, out in pairs}
    body = [
        code("{block} = T.alloc_shared((block, half), dtype)", block=cos_block),
        code("{block} = T.alloc_shared((block, half), dtype)", block=sin_block),
        code("T.copy({cos}[by * block, 0], {block})", cos=cos, block=cos_block),
        code("T.copy({sin}[by * block, 0], {block})", sin=sin, block=sin_block),
    ]
    for x, out in pairs:
        left, right = names.derived(x, "left"), names.derived(x, "right")
        new_left, new_right = names.derived(x, "new_left"), names.derived(x, "new_right")
        body += [
            code("{left} = T.alloc_shared((block, half), dtype)", left=left),
            code("{right} = T.alloc_shared((block, half), dtype)", right=right),
            code('{left} = T.alloc_fragment((block, half), "float32")', left=new_left),
            code('{right} = T.alloc_fragment((block, half), "float32")', right=new_right),
            code("T.copy({x}[by * block, 0], {left})", x=x, left=left),
            code("T.copy({x}[by * block, half], {right})", x=x, right=right),
            code("for i, j in T.Parallel(block, half):"),
            code(
                "    {new}[i, j] = {left}[i, j] * {cos}[i, j] - {right}[i, j] * {sin}[i, j]",
                new=new_left, left=left, right=right, cos=cos_block, sin=sin_block,
            ),
            code(
                "    {new}[i, j] = {right}[i, j] * {cos}[i, j] + {left}[i, j] * {sin}[i, j]",
                new=new_right, left=left, right=right, cos=cos_block, sin=sin_block,
            ),
            code("T.copy({left}, {out}[by * block, 0])", left=new_left, out=out),
            code("T.copy({right}, {out}[by * block, half])", right=new_right, out=out),
        ]  # fmt: skip
    return module.text(
        code("RoPE, from {name}: the halves of each row are rotated.", name=module.function),
        code('rows=64, half=64, block=32, dtype={dtype}', dtype=_dtype(module.kernel)), (), tensors.items(),
        code("T.ceildiv(rows, block)) as by"), body,
    )  # fmt: skip


def _attention(family: Attention, module: _Module) -> str:
    names = module.names
    q, k, v, out = (names.of(operand.tensor) for operand in (family.q, family.k, family.v, family.out))
    tensors = dict.fromkeys((q, k, v, out), code("(heads, length, dim)"))
    if family.group:
        tensors |= dict.fromkeys((k, v), code("(key_heads, length, dim)"))
    key_head = code("bh // (heads // key_heads)") if family.group else code("bh")
    # Keys beyond the edge of the last block are no keys either.
    mask = code("n * block + j <= bx * block + i") if family.causal else code("n * block + j < length")
    is_left_out = math.isinf(family.hidden)
    is_scaled_late = is_left_out and family.bias is None
    exponent = code("(scores[i, j] - largest[i]) * scale") if is_scaled_late else code("scores[i, j] - largest[i]")
    rescaled = code("(before[i] - largest[i]) * scale") if is_scaled_late else code("before[i] - largest[i]")
    begin, scaled = [code("    T.clear(scores)")], list[PythonText]()
    if is_scaled_late:
        begin = [
            code("    for i, j in T.Parallel(block, block):"),
            code('        scores[i, j] = T.if_then_else({seen}, 0.0, -T.infinity("float32"))', seen=mask),
        ]
    else:
        # Where all that is seen is less, the others count.
        hidden, score = number(family.hidden), code("scores[i, j] * scale")
        if family.bias is not None:
            score = code("{score} + 1.44269504 * ({bias})", score=score, bias=_bias(family.bias, names))
        hidden_score = code("{score} + {hidden}", score=score, hidden=hidden) if family.adds else hidden
        scaled = [
            code("    for i, j in T.Parallel(block, block):"),
            code(
                "        scores[i, j] = T.if_then_else({seen}, {score}, {other})",
                seen=mask,
                score=score,
                other=hidden_score,
            ),
        ]
    loops = code("bx + 1") if family.causal and is_left_out else code("T.ceildiv(length, block)")
    body = [
        code("q_block = T.alloc_shared((block, dim), dtype)"), code("k_block = T.alloc_shared((block, dim), dtype)"),
        code("v_block = T.alloc_shared((block, dim), dtype)"),
        code('scores = T.alloc_fragment((block, block), "float32")'),
        code("weights = T.alloc_fragment((block, block), dtype)"),
        code('acc = T.alloc_fragment((block, dim), "float32")'),
        code('largest = T.alloc_fragment((block,), "float32")'), code('before = T.alloc_fragment((block,), "float32")'),
        code('part = T.alloc_fragment((block,), "float32")'), code('total = T.alloc_fragment((block,), "float32")'),
        code("T.copy({q}[bh, bx * block, 0], q_block)", q=q), code("T.clear(acc)"), code("T.clear(total)"),
        code('T.fill(largest, -T.infinity("float32"))'),
        code("for n in T.Pipelined({loops}, num_stages=2):", loops=loops),
        code("    T.copy({k}[{head}, n * block, 0], k_block)", k=k, head=key_head),
        *begin,
        code("    T.gemm(q_block, k_block, scores, transpose_B=True)"), *scaled, code("    T.copy(largest, before)"),
        code("    T.reduce_max(scores, largest, dim=1, clear=False)"),
        code("    for i, j in T.Parallel(block, block):"),
        code("        scores[i, j] = T.exp2({exponent})", exponent=exponent),
        code("    T.reduce_sum(scores, part, dim=1)"), code("    for i in T.Parallel(block):"),
        code("        before[i] = T.exp2({rescaled})", rescaled=rescaled), code("    for i in T.Parallel(block):"),
        code("        total[i] = total[i] * before[i] + part[i]"), code("    for i, j in T.Parallel(block, dim):"),
        code("        acc[i, j] = acc[i, j] * before[i]"), code("    T.copy(scores, weights)"),
        code("    T.copy({v}[{head}, n * block, 0], v_block)", v=v, head=key_head),
        code("    T.gemm(weights, v_block, acc)"),
        code("for i, j in T.Parallel(block, dim):"), code("    acc[i, j] = acc[i, j] / total[i]"),
        code("T.copy(acc, {out}[bh, bx * block, 0])", out=out),
    ]  # fmt: skip
    summary = code("Causal attention") if family.causal else code("Attention")
    summary = code("{summary}, forward, from {name}, scaled by 1 / sqrt(dim).", summary=summary, name=module.function)
    if family.left_out:
        left_out = joined(", ", map(names.of, family.left_out))
        summary = code("{summary} Not stored here: {left_out}.", summary=summary, left_out=left_out)
    heads = code("heads=4, key_heads=2") if family.group else code("heads=2")
    return module.text(
        summary, code("{heads}, length=128, dim=64, block=32, dtype={dtype}", heads=heads, dtype=_dtype(module.kernel)),
        _given(module.kernel, names, family.bias.scalars) if family.bias else (), tensors.items(),
        code("T.ceildiv(length, block), heads) as (bx, bh)"), body,
        before=[code("# exp2 takes the scores times log2(e)."), code("scale = 1.44269504 / dim**0.5")],
    )  # fmt: skip


def _bias(bias: Bias, names: SkeletonNames) -> PythonText:
    """What is added to the score of a row and a key."""
    row, key = code("(bx * block + i)"), code("(n * block + j)")
    sides = [(bias.row, row), (bias.key, key)]
    if plus(bias.row, bias.key) == NOWHERE:
        # As a distance, it is exact.
        sides = [(bias.row, code("({row} - {key})", row=row, key=key))]
    terms = [code("{factor} * {index}", factor=_parameters(side, names), index=index) for side, index in sides if side]
    terms += [_parameters(bias.constant, names)] if bias.constant else []
    return joined(" + ", terms)


def _parameters(side: Place, names: SkeletonNames) -> PythonText:
    """A sum of products of parameters."""
    products = [
        joined(" * ", [number(factor), *(names.of(name) for _, name, _ in product)])
        for product, factor in sorted(side, key=repr)
    ]
    return code("({sum})", sum=joined(" + ", products))
