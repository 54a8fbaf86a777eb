"""The tensors of a Triton kernel while it runs: each access is checked, element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.porting.proof.running import OutsideAccess
from ttexplore.porting.proof.triton.blocks import Arithmetic, Block, Pointer, Unrunnable, is_narrow, is_real

Array = NDArray[Any]


@dataclass
class CheckedMemory:
    """The tensors by name. What is read outside of them, or in lanes that a mask leaves without a value, is NaN, or the
    smallest number of an integer dtype; what is written outside goes nowhere."""

    arrays: dict[str, Array]
    arithmetic: Arithmetic
    outside: dict[tuple[str, str], OutsideAccess] = field(default_factory=dict[tuple[str, str], OutsideAccess])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    races: dict[str, str] = field(default_factory=dict[str, str])
    # The dtypes of what is stored, where they have fewer bits than those of the tensors.
    stored: dict[str, np.dtype[Any]] = field(default_factory=dict[str, "np.dtype[Any]"])
    # The program that runs, and which one stored each element last; -1 for none.
    program: int = 0
    writers: dict[str, Array] = field(default_factory=dict[str, Array])

    @classmethod
    def of(cls, arrays: Mapping[str, Array], arithmetic: Arithmetic) -> CheckedMemory:
        """Copies of the tensors that a kernel is launched with."""
        copies = {
            name: np.array(array, np.float64 if is_real(array) and not arithmetic.rounds else array.dtype)
            for name, array in arrays.items()
        }
        return cls(copies, arithmetic)

    def inside(self, pointer: Pointer, mask: Block | None, kind: str, line: int) -> tuple[Block, Block]:
        """The offsets, with those that are masked or outside set to 0, and whether each is inside and not masked."""
        size = self.arrays[pointer.tensor].size
        offsets = pointer.offsets
        lanes = np.ones(offsets.shape, bool) if mask is None else np.broadcast_to(mask, offsets.shape)
        beyond = lanes & ((offsets < 0) | (offsets >= size))
        if np.any(beyond) and (kind, pointer.tensor) not in self.outside:
            index = int(offsets[beyond].flat[0])
            self.outside[kind, pointer.tensor] = OutsideAccess(
                "read" if kind == "read" else "write", pointer.tensor, index, line
            )
        valid = lanes & ~beyond
        return np.where(valid, offsets, 0), valid

    def load(self, pointer: Pointer, mask: Block | None, beyond: Any, line: int) -> Block:
        array = self.arrays[pointer.tensor]
        if mask is not None:
            pointer = Pointer(pointer.tensor, _widened(pointer.offsets, mask))
        poison = self.poison(array)
        if array.size == 0:
            _, valid = self.inside(pointer, mask, "read", line)
            return np.full(valid.shape, poison, array.dtype)
        offsets, valid = self.inside(pointer, mask, "read", line)
        if (writers := self.writers.get(pointer.tensor)) is not None:
            self.check_race(
                pointer, writers[offsets[valid]], "it is read after another program has written to it", line
            )
        elements = np.where(valid, array[offsets], poison)
        if mask is not None and beyond is not None:
            masked = ~np.broadcast_to(mask, valid.shape)
            fill = np.broadcast_to(np.asarray(beyond), valid.shape).astype(array.dtype)
            elements = np.where(masked, fill, elements)
        return elements.astype(array.dtype)

    def poison(self, array: Array) -> Any:
        if is_real(array):
            return np.asarray(np.nan, array.dtype)
        return np.asarray(False if array.dtype.kind == "b" else np.iinfo(array.dtype).min, array.dtype)

    def store(self, pointer: Pointer, elements: Block, mask: Block | None, line: int) -> None:
        array = self.arrays[pointer.tensor]
        if elements.ndim > pointer.offsets.ndim and elements.size > 1:
            raise Unrunnable("a block that is stored to fewer addresses than it has elements")
        offsets, valid = self.inside(pointer, mask, "write", line)
        if is_narrow(elements) and elements.dtype.itemsize < array.dtype.itemsize:
            self.stored[pointer.tensor] = elements.dtype
        values = np.broadcast_to(elements.astype(array.dtype), valid.shape)
        stored, elements = offsets[valid], values[valid]
        writers = self.writers.setdefault(pointer.tensor, np.full(array.size, -1))
        before = array[stored]
        changed = (before != elements) & ~((before != before) & (elements != elements))
        self.check_race(pointer, writers[stored][changed], "several programs store different values to it", line)
        array[stored] = elements
        writers[stored] = self.program
        self.lines[pointer.tensor] = line

    def check_race(self, pointer: Pointer, writers: Array, problem: str, line: int) -> None:
        """Note what depends on the order of programs."""
        if np.any((writers != -1) & (writers != self.program)):
            self.races.setdefault(pointer.tensor, f"{problem} (line {line})")

    def atomic(self, name: str, pointer: Pointer, elements: Block, mask: Block | None, line: int) -> Block:
        """An atomic operation, lane by lane; what was there before."""
        array = self.arrays[pointer.tensor]
        shape = np.broadcast_shapes(pointer.offsets.shape, elements.shape)
        pointer = Pointer(pointer.tensor, np.broadcast_to(pointer.offsets, shape))
        offsets, valid = self.inside(pointer, mask, "write", line)
        values = np.broadcast_to(elements.astype(array.dtype), shape)
        before = np.full(shape, self.poison(array), array.dtype)
        for lane in zip(*np.nonzero(valid), strict=True) if shape else [()] * bool(valid):
            old = array[offsets[lane]]
            before[lane] = old
            array[offsets[lane]] = _ATOMIC[name](old, values[lane])
        return before

    def exchange(self, pointer: Pointer, compared: Block, elements: Block, line: int) -> Block:
        """Compare and swap one element; what was there before."""
        if pointer.offsets.shape:
            raise Unrunnable("an exchange of a block")
        array = self.arrays[pointer.tensor]
        offset, valid = self.inside(pointer, None, "write", line)
        before = np.asarray(array[offset] if valid else self.poison(array))
        if valid and before == compared:
            array[offset] = elements.astype(array.dtype)
        return before


def _widened(offsets: Block, mask: Block) -> Block:
    """Addresses of a column or row with a mask of a whole block."""
    return np.broadcast_to(offsets, np.broadcast_shapes(offsets.shape, mask.shape))


def _exchanged(old: Any, new: Any) -> Any:
    return new


_ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "atomic_add": operator.add,
    "atomic_max": max,
    "atomic_min": min,
    "atomic_xchg": _exchanged,
    "atomic_and": np.bitwise_and,
    "atomic_or": np.bitwise_or,
    "atomic_xor": np.bitwise_xor,
}
