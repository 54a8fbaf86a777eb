"""The constructs of a foreign source, each with its place and the row of the porting table that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ttexplore.porting.foreign.places import Place
from ttexplore.porting.foreign.values import Output, Value

Language = Literal["Triton", "CUDA", "ThunderKittens"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A construct of a GPU language: where it stands, counted from 1, its text, and the name of the row of the porting
    table that it belongs to, empty if no row is known for it."""

    line: int
    column: int
    text: str
    row: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel, or of its template: a tensor, a number, a constant of the compiler, or a type. The dtype
    is that of a tensor's elements, where the source says it, or of a number that is whole or a bool. What only hints to
    the compiler use is not `used`."""

    name: str
    kind: Literal["tensor", "number", "constant", "type"]
    dtype: str = ""
    used: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKernel:
    """A kernel of a source: its name and line, what it stores, its parameters that are numbers, and the parameters that
    are lengths of rows, because indices are compared with them. `unread` says why the values are not known,
    `variants` which conditions on constants of the kernel were taken to hold. `updates` are what loops make of
    variables in each turn, `bounds` the indices that masks compare, each with its length. `defaults` are those of
    its `parameters`, `block_counts` the ends of loops that go on from a block's own number, and `constants` the
    whole numbers that the source gives names outside of the kernel. `group_sizes` are the parameters that say how
    many rows of blocks follow each other in each column before the next rows. Whether parameters that are numbers
    `has_types` depends on the language: where they have, numbers without a dtype are float32.
    A kernel `joins_warps` if a row is of all warps of a block."""

    name: str
    line: int
    stores: tuple[Output, ...]
    scalars: tuple[str, ...] = ()
    lengths: frozenset[str] = frozenset()
    unread: str = ""
    variants: tuple[str, ...] = ()
    updates: Mapping[str, Value] = field(default_factory=dict[str, Value])
    bounds: Mapping[Place, Place] = field(default_factory=dict[Place, Place])
    defaults: Mapping[str, float] = field(default_factory=dict[str, float])
    parameters: tuple[Parameter, ...] = ()
    block_counts: frozenset[str] = frozenset()
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    group_sizes: frozenset[str] = frozenset()
    has_types: bool = False
    joins_warps: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a source: its language, constructs and kernels."""

    language: Language
    marks: tuple[Mark, ...]
    kernels: tuple[ForeignKernel, ...]
