"""Writing what a foreign kernel computes as a kernel in TileLang."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ttexplore.porting.foreign.families import Attention, Family, Gemm, Rope, Rowwise
from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.values import (
    Input,
    Number,
    Op,
    Product,
    Reduced,
    Scalar,
    Value,
    parts_of,
    walk,
)

_INFIX = {"+", "-", "*", "/", "%", "//", "<", "<=", ">", ">=", "==", "!=", "&", "|"}
_OWN = (
    "rows", "columns", "depth", "block", "block_depth", "dtype", "kernel", "heads", "length", "dim", "half", "T", "i",
    "j", "k", "bx", "by", "bh", "acc",
)  # fmt: skip
_BEGIN = '''import ttexplore.language as T


def {name}({parameters}):
    """{summary}"""
'''


def factory_name(kernel: ForeignKernel) -> str:
    """What the skeleton calls the kernel."""
    return _Names(kernel).function


def skeleton(kernel: ForeignKernel, family: Family) -> str:
    """The text of a module with a factory of the kernel, for :func:`ttexplore.explore`."""
    names = _Names(kernel)
    match family:
        case Gemm():
            return _gemm(kernel, family, names)
        case Attention():
            return _attention(kernel, family, names)
        case Rope():
            return _rope(kernel, family, names)
        case Rowwise():
            return _Rows(kernel, family, names).text()


@dataclass
class _Names:
    """Names of the source, where they do not clash with those of the skeleton."""

    kernel: ForeignKernel

    def of(self, name: str) -> str:
        plain = "".join(c if c.isalnum() else "_" for c in name).strip("_") or "x"
        plain = f"x{plain}" if plain[0].isdigit() else plain
        return f"{plain}_" if plain in _OWN or keyword.iskeyword(plain) else plain

    @property
    def function(self) -> str:
        return self.of(self.kernel.name)

    def scalars(self, values: Iterable[Value]) -> list[str]:
        """The parameters that are numbers in these values, but lengths."""
        found = dict.fromkeys(
            one.name
            for value in values
            for one in walk(value)
            if isinstance(one, Scalar) and one.name not in self.kernel.lengths
        )
        return [self.of(one) for one in found]


def _expression(value: Value, leaf: Callable[[Value], str | None]) -> str:
    known = leaf(value)
    if known is not None:
        return known
    match value:
        case Number(number):
            if number == float("inf"):
                return 'T.infinity("float32")'
            return repr(number)
        case Op("where", (condition, then, otherwise)):
            parts = [_expression(one, leaf) for one in (condition, then, otherwise)]
            return f"T.if_then_else({', '.join(parts)})"
        case Op(name, (left, right)) if name in _INFIX:
            return f"({_expression(left, leaf)} {name} {_expression(right, leaf)})"
        case Op(name, arguments):
            return f"T.{name}({', '.join(_expression(one, leaf) for one in arguments)})"
        case _:
            raise AssertionError(f"{type(value).__name__} is no expression of elements")


def _bare(text: str) -> str:
    """An expression without parentheses around all of it."""
    if text.startswith("(") and text.endswith(")"):
        depth = 0
        for place, character in enumerate(text):
            depth += (character == "(") - (character == ")")
            if depth == 0:
                return text[1:-1] if place == len(text) - 1 else text
    return text


def _signature(tensors: Iterable[tuple[str, str]]) -> list[str]:
    parts = [f"{name}: T.Tensor({shape}, dtype)" for name, shape in tensors]
    return ["    @T.prim_func", "    def kernel(", *(f"        {one}," for one in parts), "    ):"]


def _parameters(fixed: str, scalars: Iterable[str]) -> str:
    return ", ".join([fixed, *(f"{one}=1.0" for one in scalars)])


def _rank(axes: frozenset[str], two: bool) -> str:
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


@dataclass
class _Rows:
    """The writer of kernels on blocks of whole rows, or of kernels without reductions on any blocks."""

    kernel: ForeignKernel
    family: Rowwise
    names: _Names
    lines: list[str] = field(default_factory=list[str])
    buffers: list[str] = field(default_factory=list[str])
    made: dict[Value, str] = field(default_factory=dict[Value, str])
    count: int = 0

    @property
    def two(self) -> bool:
        """Whether the source has blocks of rows and columns."""
        inputs = [one for store in self.family.stores for one in walk(store.value) if isinstance(one, Input)]
        places = [one.axes for one in (*inputs, *self.family.stores)]
        return any({"r0", "r1"} <= axes or {"x", "y"} <= axes for axes in places)

    def rank(self, value: Value) -> str:
        match value:
            case Input(axes=axes):
                return _rank(axes, self.two)
            case Reduced():
                return "column"
            case Scalar() | Number():
                return "number"
            case _:
                ranks = {self.rank(one) for one in parts_of(value)}
                return "full" if ranks & {"full", "row"} else "column" if "column" in ranks else "number"

    def text(self) -> str:
        stores, names = self.family.stores, self.names
        inputs: dict[str, Input] = {}
        for store in stores:
            for one in walk(store.value):
                if isinstance(one, Input):
                    inputs.setdefault(one.tensor, one)
        whole = any(isinstance(one, Reduced) for store in stores for one in walk(store.value))
        width = "columns" if whole else "block"
        at = ("by * block, 0", "0") if whole else ("by * block, bx * block", "bx * block")
        shapes = {"full": "(rows, columns)", "row": "(columns,)", "column": "(rows,)"}
        places = {"full": at[0], "row": at[1], "column": "by * block"}
        blocks = {"full": f"(block, {width})", "row": f"({width},)", "column": "(block,)"}
        out = {one.tensor: self.rank(one.value) for one in stores}
        tensors = {name: self.rank(one) for name, one in inputs.items()} | {
            name: "full" if rank == "number" else rank for name, rank in out.items() if name not in inputs
        }
        load: list[str] = []
        for name, one in inputs.items():
            rank = self.rank(one)
            buffer = f"{names.of(name)}_block"
            self.buffers.append(f"{buffer} = T.alloc_shared({blocks[rank]}, dtype)")
            load.append(f"T.copy({names.of(name)}[{places[rank]}], {buffer})")
        for store in stores:
            rank = out[store.tensor] if out[store.tensor] != "number" else "full"
            buffer = f"{names.of(store.tensor)}_out"
            self.buffers.append(f'{buffer} = T.alloc_fragment({blocks[rank]}, "float32")')
            self.assign(buffer, store.value, rank, width)
            self.lines.append(f"T.copy({buffer}, {names.of(store.tensor)}[{places[rank]}])")
        scalars = names.scalars(store.value for store in stores)
        grid = (
            "T.ceildiv(rows, block)) as by"
            if whole
            else "T.ceildiv(columns, block), T.ceildiv(rows, block)) as (bx, by)"
        )
        begin = _BEGIN.format(
            name=names.function, parameters=_parameters('rows=256, columns=256, block=32, dtype="bfloat16"', scalars),
            summary=f"{self.family.row}, from {self.kernel.name}. One block has whole rows."
            if whole else f"{self.family.row}, from {self.kernel.name}.",
        )  # fmt: skip
        body = _signature((names.of(name), shapes[rank]) for name, rank in tensors.items())
        body += [
            f"        with T.Kernel({grid}:",
            *(f"            {one}" for one in (*self.buffers, *load, *self.lines)),
        ]
        return "\n".join([begin, *body, "", "    return kernel", ""])

    def assign(self, buffer: str, value: Value, rank: str, width: str) -> None:
        self.prepare(value, width)
        if rank == "column":
            self.lines += ["for i in T.Parallel(block):", f"    {buffer}[i] = {_bare(self.element(value))}"]
        else:
            self.lines += [
                f"for i, j in T.Parallel(block, {width}):",
                f"    {buffer}[i, j] = {_bare(self.element(value))}",
            ]
            self.made[value] = f"{buffer}[i, j]"

    def prepare(self, value: Value, width: str) -> None:
        """Write what a value needs before its own loop: reductions, and what is the same for a whole row."""
        if value in self.made:
            return
        for one in parts_of(value):
            self.prepare(one, width)
        match value:
            case Reduced(kind, inner):
                source = self.made.get(inner, "")
                if not source.endswith("[i, j]"):
                    source = self.fresh("part")
                    self.buffers.append(f'{source} = T.alloc_fragment((block, {width}), "float32")')
                    self.assign(source, inner, "full", width)
                source = source.removesuffix("[i, j]")
                name = self.fresh({"sum": "total", "max": "largest", "min": "smallest"}[kind])
                self.buffers.append(f'{name} = T.alloc_fragment((block,), "float32")')
                self.lines.append(f"T.reduce_{kind}({source}, {name}, dim=1)")
                self.made[value] = f"{name}[i]"
            case Op(_, arguments):
                # A value of a row that the values of elements use.
                for one in arguments:
                    if (
                        self.rank(value) == "full"
                        and self.rank(one) == "column"
                        and isinstance(one, Op)
                        and one not in self.made
                    ):
                        name = self.fresh("row_value")
                        self.buffers.append(f'{name} = T.alloc_fragment((block,), "float32")')
                        self.lines += ["for i in T.Parallel(block):", f"    {name}[i] = {_bare(self.element(one))}"]
                        self.made[one] = f"{name}[i]"
            case _:
                pass

    def fresh(self, name: str) -> str:
        self.count += 1
        return f"{name}_{self.count}"

    def element(self, value: Value) -> str:
        def leaf(one: Value) -> str | None:
            if one in self.made:
                return self.made[one]
            match one:
                case Input(tensor):
                    index = {"full": "i, j", "row": "j", "column": "i"}[self.rank(one)]
                    return f"{self.names.of(tensor)}_block[{index}]"
                case Scalar(name):
                    # A length that indices are compared with is that of the row.
                    return "columns" if name in self.kernel.lengths else self.names.of(name)
                case _:
                    return None

        return _expression(value, leaf)


def _gemm(kernel: ForeignKernel, family: Gemm, names: _Names) -> str:
    a, b = names.of(family.a.tensor), names.of(family.b.tensor)
    tensors = {a: "(rows, depth)", b: "(columns, depth)" if family.product.transposed else "(depth, columns)"}
    extra: dict[str, str] = {}
    for store in family.stores:
        for one in walk(store.value):
            if isinstance(one, Input) and one not in (family.a, family.b):
                extra[one.tensor] = _rank(one.axes, two=True)
    shapes = {"full": "(rows, columns)", "row": "(columns,)", "column": "(rows,)"}
    blocks = {"full": "(block, block)", "row": "(block,)", "column": "(block,)"}
    places = {"full": "by * block, bx * block", "row": "bx * block", "column": "by * block"}
    tensors |= {names.of(name): shapes[rank] for name, rank in extra.items()}
    tensors |= {names.of(one.tensor): "(rows, columns)" for one in family.stores if names.of(one.tensor) not in tensors}
    b_block = "(block, block_depth)" if family.product.transposed else "(block_depth, block)"
    b_place = "bx * block, k * block_depth" if family.product.transposed else "k * block_depth, bx * block"
    product = f"T.gemm({a}_block, {b}_block, acc{', transpose_B=True' if family.product.transposed else ''})"
    body = [
        f"{a}_block = T.alloc_shared((block, block_depth), dtype)", f"{b}_block = T.alloc_shared({b_block}, dtype)",
        'acc = T.alloc_fragment((block, block), "float32")',
        *(f"{names.of(name)}_block = T.alloc_shared({blocks[rank]}, dtype)" for name, rank in extra.items()),
        *(f"T.copy({names.of(name)}[{places[rank]}], {names.of(name)}_block)" for name, rank in extra.items()),
        "T.clear(acc)", "for k in T.Pipelined(T.ceildiv(depth, block_depth), num_stages=2):",
        f"    T.copy({a}[by * block, k * block_depth], {a}_block)", f"    T.copy({b}[{b_place}], {b}_block)",
        f"    {product}",
    ]  # fmt: skip

    def leaf(one: Value) -> str | None:
        match one:
            case Product():
                return "acc[i, j]"
            case Input(tensor):
                index = {"full": "i, j", "row": "j", "column": "i"}[extra[tensor]]
                return f"{names.of(tensor)}_block[{index}]"
            case Scalar(name):
                # The loop of a product goes over K.
                return "depth" if name in kernel.lengths else names.of(name)
            case _:
                return None

    for store in family.stores:
        buffer = "acc"
        if not isinstance(store.value, Product):
            if store is not family.stores[-1]:
                # Later stores are made of the product too.
                buffer = f"{names.of(store.tensor)}_out"
                body.insert(2, f'{buffer} = T.alloc_fragment((block, block), "float32")')
            text = _bare(_expression(store.value, leaf))
            body += ["for i, j in T.Parallel(block, block):", f"    {buffer}[i, j] = {text}"]
        body.append(f"T.copy({buffer}, {names.of(store.tensor)}[by * block, bx * block])")
    fused = any(not isinstance(one.value, Product) for one in family.stores)
    begin = _BEGIN.format(
        name=names.function,
        parameters=_parameters(
            'rows=128, columns=128, depth=128, block=64, block_depth=32, dtype="bfloat16"',
            names.scalars(one.value for one in family.stores),
        ),
        summary=f"GEMM{' with an epilogue' if fused else ''}, from {kernel.name}.",
    )
    grid = "        with T.Kernel(T.ceildiv(columns, block), T.ceildiv(rows, block)) as (bx, by):"
    lines = [
        begin,
        *_signature(tensors.items()),
        grid,
        *(f"            {one}" for one in body),
        "",
        "    return kernel",
        "",
    ]
    return "\n".join(lines)


def _rope(kernel: ForeignKernel, family: Rope, names: _Names) -> str:
    cos, sin = names.of(family.cos), names.of(family.sin)
    pairs = [(names.of(x), names.of(out)) for x, out in family.pairs]
    tensors = {x: "(rows, 2 * half)" for x, _ in pairs} | {cos: "(rows, half)", sin: "(rows, half)"}
    tensors |= {out: "(rows, 2 * half)" for _, out in pairs}
    body = [
        f"{cos}_block = T.alloc_shared((block, half), dtype)",
        f"{sin}_block = T.alloc_shared((block, half), dtype)",
    ]
    body += [f"T.copy({cos}[by * block, 0], {cos}_block)", f"T.copy({sin}[by * block, 0], {sin}_block)"]
    for x, out in pairs:
        body += [
            f"{x}_left = T.alloc_shared((block, half), dtype)", f"{x}_right = T.alloc_shared((block, half), dtype)",
            f'{x}_new_left = T.alloc_fragment((block, half), "float32")',
            f'{x}_new_right = T.alloc_fragment((block, half), "float32")',
            f"T.copy({x}[by * block, 0], {x}_left)", f"T.copy({x}[by * block, half], {x}_right)",
            "for i, j in T.Parallel(block, half):",
            f"    {x}_new_left[i, j] = {x}_left[i, j] * {cos}_block[i, j] - {x}_right[i, j] * {sin}_block[i, j]",
            f"    {x}_new_right[i, j] = {x}_right[i, j] * {cos}_block[i, j] + {x}_left[i, j] * {sin}_block[i, j]",
            f"T.copy({x}_new_left, {out}[by * block, 0])", f"T.copy({x}_new_right, {out}[by * block, half])",
        ]  # fmt: skip
    begin = _BEGIN.format(
        name=names.function, parameters='rows=64, half=64, block=32, dtype="bfloat16"',
        summary=f"RoPE, from {kernel.name}: the halves of each row are rotated.",
    )  # fmt: skip
    grid = "        with T.Kernel(T.ceildiv(rows, block)) as by:"
    return "\n".join(
        [
            begin,
            *_signature(tensors.items()),
            grid,
            *(f"            {one}" for one in body),
            "",
            "    return kernel",
            "",
        ]
    )


def _attention(kernel: ForeignKernel, family: Attention, names: _Names) -> str:
    q, k, v, out = (names.of(one.tensor) for one in (family.q, family.k, family.v, family.out))
    tensors = dict.fromkeys((q, k, v, out), "(heads, length, dim)")
    masked = [
        "    for i, j in T.Parallel(block, block):",
        '        scores[i, j] = T.if_then_else(n * block + j <= bx * block + i, 0.0, -T.infinity("float32"))',
    ]
    body = [
        "q_block = T.alloc_shared((block, dim), dtype)", "k_block = T.alloc_shared((block, dim), dtype)",
        "v_block = T.alloc_shared((block, dim), dtype)", 'scores = T.alloc_fragment((block, block), "float32")',
        "weights = T.alloc_fragment((block, block), dtype)", 'acc = T.alloc_fragment((block, dim), "float32")',
        'largest = T.alloc_fragment((block,), "float32")', 'before = T.alloc_fragment((block,), "float32")',
        'part = T.alloc_fragment((block,), "float32")', 'total = T.alloc_fragment((block,), "float32")',
        f"T.copy({q}[bh, bx * block, 0], q_block)", "T.clear(acc)", "T.clear(total)",
        'T.fill(largest, -T.infinity("float32"))',
        f"for n in T.Pipelined({'bx + 1' if family.causal else 'T.ceildiv(length, block)'}, num_stages=2):",
        f"    T.copy({k}[bh, n * block, 0], k_block)", *(masked if family.causal else ["    T.clear(scores)"]),
        "    T.gemm(q_block, k_block, scores, transpose_B=True)", "    T.copy(largest, before)",
        "    T.reduce_max(scores, largest, dim=1, clear=False)", "    for i, j in T.Parallel(block, block):",
        "        scores[i, j] = T.exp2((scores[i, j] - largest[i]) * scale)", "    T.reduce_sum(scores, part, dim=1)",
        "    for i in T.Parallel(block):", "        before[i] = T.exp2((before[i] - largest[i]) * scale)",
        "    for i in T.Parallel(block):", "        total[i] = total[i] * before[i] + part[i]",
        "    for i, j in T.Parallel(block, dim):", "        acc[i, j] = acc[i, j] * before[i]",
        "    T.copy(scores, weights)", f"    T.copy({v}[bh, n * block, 0], v_block)",
        "    T.gemm(weights, v_block, acc)",
        "for i, j in T.Parallel(block, dim):", "    acc[i, j] = acc[i, j] / total[i]",
        f"T.copy(acc, {out}[bh, bx * block, 0])",
    ]  # fmt: skip
    left_out = f" Not stored here: {', '.join(family.left_out)}." if family.left_out else ""
    begin = _BEGIN.format(
        name=names.function, parameters='heads=2, length=128, dim=64, block=32, dtype="bfloat16"',
        summary=f"{'Causal attention' if family.causal else 'Attention'}, forward, from {kernel.name}, "
        f"scaled by 1 / sqrt(dim).{left_out}",
    )  # fmt: skip
    begin += "    # exp2 takes the scores times log2(e).\n    scale = 1.44269504 / dim**0.5\n"
    grid = "        with T.Kernel(T.ceildiv(length, block), heads) as (bx, bh):"
    return "\n".join(
        [
            begin,
            *_signature(tensors.items()),
            grid,
            *(f"            {one}" for one in body),
            "",
            "    return kernel",
            "",
        ]
    )
