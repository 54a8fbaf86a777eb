"""A kernel as a value: what the generator draws, the source text is written from, and NumPy computes.

Integer expressions of block indices and loop variables are kept as Python text: they mean in a kernel what they mean
in Python, with `INDEX_FUNCTIONS` as T.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

BLOCK_INDICES = ("bx", "by", "bz")


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _held(value: int, dtype: str) -> int:
    """What an integer dtype keeps of a number: its lowest bits."""
    bits = int(dtype.lstrip("uint"))
    least = 0 if dtype.startswith("u") else -(1 << bits - 1)
    return (value - least) % (1 << bits) + least


INDEX_FUNCTIONS = SimpleNamespace(
    min=min, max=max, clamp=lambda value, low, high: max(low, min(value, high)),
    if_then_else=lambda test, chosen, other: chosen if test else other, ceildiv=lambda a, b: -(-a // b),
    truncdiv=_truncated, truncmod=lambda a, b: a - b * _truncated(a, b), cast=_held,
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A T.dynamic size: its value when the kernel is lowered, and another one that it runs with `later`."""

    name: str
    value: int
    later: int


@dataclass(frozen=True)
class Blocks:
    """How many blocks cover a T.dynamic size: ``T.ceildiv(size, block)``."""

    size: str
    block: int


@dataclass(frozen=True)
class Tensor:
    """A parameter; a name in its shape is that of a T.dynamic size. `values` says how random inputs are drawn:
    ``coarse`` are multiples of 1/32 from -2 to 2, which every format holds exactly; ``positive`` multiples of 1/32 from
    0.5 to 2; ``normal`` have full mantissas, within ±4; ``whole`` numbers are within ±200, ``bytes`` from 0 to 255, a
    third of them 0, ``signed`` from -128 to 127.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    values: Literal["coarse", "positive", "normal", "whole", "bytes", "signed"] = "coarse"


# Expressions of elements


@dataclass(frozen=True)
class Load:
    """``buffer[indices]`` at texts of the loop variables of T.Parallel."""

    buffer: str
    indices: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    value: float


@dataclass(frozen=True)
class Position:
    """An integer expression of block indices and loop variables, as int32."""

    text: str


@dataclass(frozen=True)
class Named:
    """A value that was given a name in the same T.Parallel."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operation of `meaning.OPERATIONS` on expressions."""

    name: str
    arguments: tuple[Expression, ...]


Expression = Load | Constant | Position | Named | Call


# Statements


@dataclass(frozen=True)
class Allocate:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: Literal["shared", "fragment", "local", "var"]


@dataclass(frozen=True)
class Region:
    """A block of a tensor or a whole on-chip buffer: texts of the starts, and its extents along all axes.

    `form` is how it is written: ``index`` as ``A[start, start]``, ``slice`` as ``A[start : start + extent, ...]``,
    ``whole`` as ``A``.
    """

    name: str
    starts: tuple[str, ...]
    extents: tuple[int, ...]
    form: Literal["index", "slice", "whole"] = "index"


@dataclass(frozen=True)
class Copy:
    source: Region
    target: Region


@dataclass(frozen=True)
class Fill:
    buffer: str
    value: float


@dataclass(frozen=True)
class Gemm:
    a: str
    b: str
    c: str
    transpose_a: bool = False
    transpose_b: bool = False
    clear: bool = False


@dataclass(frozen=True)
class Reduce:
    """``T.reduce_<kind>(source, target, dim=dim)``: a vector of a block of two axes. What the target holds takes part
    unless it is cleared."""

    kind: str
    source: str
    target: str
    dim: Literal[0, 1]
    clear: bool = True


BindForm = Literal["name", "list", "tuple", "dict", "walrus", "default", "helper", "together"]


@dataclass(frozen=True)
class Bind:
    """A value that Python keeps inside T.Parallel, as it is where it is bound.

    `form` says how: ``x = v``, ``x = [v]`` and ``x[0]``, ``f, *x = (0, v)``, ``x = {"x": v}``, ``:=``, as the default
    value of a function, through a function of the file, or with those after it on the right of ``a[i], b[i] = v, w``.
    """

    name: str
    value: Expression
    form: BindForm = "name"


@dataclass(frozen=True)
class Store:
    """``buffer[all loop variables] = value`` inside T.Parallel, or at `indices`, of a tensor. A `test` is that of an
    ``if`` around it, whose ``else`` stores `other`, or keeps what the element holds."""

    buffer: str
    value: Expression
    indices: tuple[str, ...] = ()
    test: Expression | None = None
    other: Expression | None = None

    @property
    def loaded(self) -> set[str]:
        """What is read for it; what it keeps is read as well."""
        parts = [one for one in (self.value, self.test, self.other) if one is not None]
        kept = {self.buffer} if self.test is not None and self.other is None else set[str]()
        return kept.union(*map(loaded, parts))


@dataclass(frozen=True)
class Parallel:
    variables: tuple[str, ...]
    extents: tuple[int, ...]
    body: tuple[Bind | Store, ...]


@dataclass(frozen=True)
class Loop:
    """A loop from 0: T.serial, T.Pipelined where `stages` is a number, or one that Python runs and counts itself.

    It begins at `first` and ends at `own`, expressions of block indices, where there are such; `own` counts where it is
    less than `extent`. To both bounds `shift` is added, where there is one. Bounds may be negative. A turn is taken
    where `test` holds, if there is one: of indices, and of elements of tensors.
    """

    variable: str
    extent: int | Blocks
    stages: int | None
    body: tuple[Statement, ...]
    in_python: bool = False
    own: str = ""
    first: str = ""
    shift: str = ""
    test: str = ""


@dataclass(frozen=True)
class Branch:
    """``if test:`` around statements, a test as that of a loop; an ``else`` where there are `other` ones."""

    test: str
    body: tuple[Statement, ...]
    other: tuple[Statement, ...] = ()


ScalarForm = Literal["name", "variable", "element", "block"]


@dataclass(frozen=True)
class Scalar:
    """One value outside of T.Parallel, whose loads are at numbers: ``x = v`` as a name or a T.alloc_var, ``x[0] = v``
    of a local block, or ``b[indices] = v`` of any other."""

    name: str
    value: Expression
    form: ScalarForm = "name"
    indices: tuple[str, ...] = ()


Statement = Scalar | Allocate | Copy | Fill | Gemm | Reduce | Parallel | Loop | Branch


@dataclass(frozen=True)
class Kernel:
    """`annotations` are lines of the kernel that say something about its schedule or its tensors. A tensor that no
    statement names is a parameter that the kernel does not use."""

    grid: tuple[int | Blocks, ...]
    tensors: tuple[Tensor, ...]
    body: tuple[Statement, ...]
    sizes: tuple[Size, ...] = ()
    annotations: tuple[str, ...] = ()
    name: str = "kernel"

    def number(self, extent: int | str | Blocks) -> int:
        """An extent with the sizes that the kernel is lowered with."""
        values = {size.name: size.value for size in self.sizes}
        match extent:
            case int():
                return extent
            case str():
                return values[extent]
            case Blocks(size, block):
                return -(-values[size] // block)

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """A tensor's shape with the sizes that the kernel is lowered with."""
        return tuple(self.number(extent) for extent in tensor.shape)

    def fixed(self, size: str) -> Kernel:
        """The kernel with a number for one of its sizes."""

        def extent(one: Any) -> Any:
            name = one.size if isinstance(one, Blocks) else one
            return self.number(one) if name == size else one

        def turns(statement: Statement) -> Statement:
            if isinstance(statement, Branch):
                return replace(statement, body=(*map(turns, statement.body),), other=(*map(turns, statement.other),))
            if not isinstance(statement, Loop):
                return statement
            return replace(statement, extent=extent(statement.extent), body=tuple(map(turns, statement.body)))

        return replace(
            self,
            grid=tuple(map(extent, self.grid)),
            tensors=tuple(replace(one, shape=tuple(map(extent, one.shape))) for one in self.tensors),
            body=tuple(map(turns, self.body)),
            sizes=tuple(one for one in self.sizes if one.name != size),
        )

    def later(self) -> Kernel:
        """The kernel with the sizes that it runs with later."""
        return replace(self, sizes=tuple(replace(size, value=size.later) for size in self.sizes))


@dataclass(frozen=True)
class Schedule:
    """The target and the options that a kernel is lowered with; with `few_buffers`, on a chip that has no more circular
    buffers than the kernel cannot do without."""

    target: str = "wormhole_n150"
    options: dict[str, object] = field(default_factory=dict[str, object])
    few_buffers: bool = False


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements below `body`, loops and branches before what is in them."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop | Branch):
            yield from statements(statement.body)
        if isinstance(statement, Branch):
            yield from statements(statement.other)


def stores(body: tuple[Statement, ...]) -> Iterator[Store]:
    """All stores of T.Parallel below `body`."""
    nests = (one for one in statements(body) if isinstance(one, Parallel))
    return (one for nest in nests for one in nest.body if isinstance(one, Store))


def outputs(kernel: Kernel) -> tuple[Tensor, ...]:
    """The tensors that the kernel stores to, in the order of its parameters."""
    stored = {one.target.name for one in statements(kernel.body) if isinstance(one, Copy)}
    stored |= {one.buffer for one in stores(kernel.body)}
    return tuple(tensor for tensor in kernel.tensors if tensor.name in stored)


def inputs(kernel: Kernel, updated: Collection[str] = ()) -> tuple[Tensor, ...]:
    """The tensors that the kernel does not store to, and those that it updates, in the order of its parameters."""
    stored = [tensor for tensor in outputs(kernel) if tensor.name not in updated]
    return tuple(tensor for tensor in kernel.tensors if tensor not in stored)


def unused(kernel: Kernel) -> tuple[Tensor, ...]:
    """The tensors that no statement names."""
    copies = [one for one in statements(kernel.body) if isinstance(one, Copy)]
    named = {region.name for one in copies for region in (one.source, one.target)}
    tests = [one.test for one in statements(kernel.body) if isinstance(one, Loop | Branch)]
    named |= {name for test in tests for name in re.findall(r"[^\W\d]\w*", test)}
    named |= {name for one in statements(kernel.body) if isinstance(one, Scalar) for name in loaded(one.value)}
    nests = [one for one in statements(kernel.body) if isinstance(one, Parallel)]
    named |= {name for nest in nests for one in nest.body if isinstance(one, Bind) for name in loaded(one.value)}
    named |= {name for one in stores(kernel.body) for name in (one.buffer, *one.loaded)}
    return tuple(tensor for tensor in kernel.tensors if tensor.name not in named)


def loaded(value: Expression) -> set[str]:
    """The buffers, tensors and scalars that an expression reads."""
    match value:
        case Load(name) | Named(name):
            return {name}
        case Call(_, arguments):
            return set[str]().union(*map(loaded, arguments))
        case _:
            return set()


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A description with other names, in its texts as well; keys of `names` are no dtypes, operations or forms."""
    if isinstance(value, str):
        return re.sub(r"[^\W\d]\w*", lambda found: names.get(found[0], found[0]), value)
    if isinstance(value, tuple):
        return tuple(renamed(one, names) for one in value)  # pyright: ignore[reportUnknownVariableType]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: renamed(getattr(value, one.name), names) for one in fields(value)})
    return value
