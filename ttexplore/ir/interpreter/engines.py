"""The compute engine of a core: DST with its sections, and the setup of unpackers, packer and engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ttexplore.ir.interpreter.arrays import Array
from ttexplore.ir.interpreter.where import Where
from ttexplore.ir.names import DST
from ttexplore.ops.op import Op, TileKind
from ttexplore.ops.storage import rounded
from ttexplore.plan import Plan

# Source registers A and B, and the packer: each is set to the data format of a circular buffer.
Part = Literal["a", "b", "pack"]
# A data format, and whether it is unpacked to DST directly.
Format = tuple[str, bool]
# Where a section of DST is: "" stands for released.
Section = Literal["", "acquired", "committed", "waited"]


@dataclass(slots=True)
class Dst:
    """The arrays of tiles in DST, by name. Where its use is `managed`, it is used in sections; `wide` tiles have 32
    bits. `kinds` tells what tiles hold, by array and index: nothing is known of those that were not touched. With
    `adds`, what is packed is added to the tile in L1."""

    arrays: dict[str, Array]
    where: Where
    managed: bool
    wide: bool
    kinds: dict[tuple[str, int], TileKind] = field(default_factory=dict[tuple[str, int], TileKind])
    section: Section = ""
    adds: bool = False

    # Sections

    def acquire(self) -> None:
        self._go("", "acquired")
        self.arrays[DST][...] = 0.0
        self.kinds.clear()

    def commit(self) -> None:
        self._go("acquired", "committed")

    def wait(self) -> None:
        self._go("committed", "waited")

    def release(self) -> None:
        self._go("waited", "")
        self.arrays[DST][...] = np.nan

    def _go(self, expected: Section, new: Section) -> None:
        if self.section != expected:
            raise self.where.fault(
                "V020",
                f"the DST section is {self.section or 'released'}, but it should be {expected or 'released'}",
                "call them in the order acquire, commit, wait, release",
            )
        self.section = new

    def check_released(self, op: Op) -> None:
        if self.section:
            raise self.where.fault(
                "V021",
                f"{op.name} runs while DST is {self.section}, but it should be released",
                "put it before tile_regs_acquire or after tile_regs_release",
            )

    # Tiles

    def check_slot(self, op: Op, array: str, index: int) -> None:
        tiles = len(self.arrays[array])
        if not 0 <= index < tiles:
            raise self.where.fault(
                "V022", f"{op.name} uses slot {index} of DST, which has {tiles} slots", "use smaller sub-blocks"
            )
        if self.managed:
            expected = "waited" if op.engine == "pack" else "acquired"
            if self.section != expected:
                raise self.where.fault(
                    "V021",
                    f"{op.name} runs while DST is {self.section or 'released'}, but it should be {expected}",
                    "acquire before computing; commit and wait before packing",
                )

    def read(self, op: Op, array: str, index: int) -> Array:
        """A tile as what it holds."""
        tile = self.arrays[array][index]
        kind = self.kinds.get((array, index), op.takes)
        return self.as_taken(op, tile.view(np.int32) if kind == "int32" else tile, f"slot {index} of DST")

    def as_taken(self, op: Op, tile: Array, holder: str) -> Array:
        """A tile that an operation reads. Raises VerifyError where it takes only others."""
        if op.takes != "any" and str(tile.dtype) != op.takes:
            raise self.where.fault(
                "V045", f"{op.name} takes {op.takes}, but {holder} holds {tile.dtype}", "call a typecast before it"
            )
        return tile

    def write(self, op: Op, array: str, index: int, result: Array) -> None:
        tiles = self.arrays[array]
        if op.accumulates and self.section:
            result = tiles[index] + result
        if result.dtype == np.int32:
            self.kinds[array, index] = "int32"
            tiles[index] = result.view(np.float32)
            return
        self.kinds[array, index] = "float32"
        tiles[index] = result if self.wide else rounded(result, "bfloat16")

    def add(self, array: str, index: int, results: Array) -> None:
        """Add to tiles from `index` on."""
        into = self.arrays[array][index : index + len(results)]
        total = into + results
        into[...] = total if self.wide else rounded(total, "bfloat16")
        self.kinds |= dict.fromkeys(((array, index + tile) for tile in range(len(results))), "float32")


@dataclass(slots=True)
class Setup:
    """What the engine is set up for, from its start-up on: the data formats of its parts, the operation, with its
    numbers, that the FPU was initialised for, and the init of the SFPU, with its numbers."""

    plan: Plan
    where: Where
    started: bool = False
    formats: dict[Part, Format] = field(default_factory=dict[Part, Format])
    fpu: tuple[str, tuple[float, ...]] | None = None
    sfpu: tuple[str, tuple[float, ...]] | None = None

    def format_of(self, cb: str) -> Format:
        buffer = self.plan.buffer(cb)
        return buffer.data_format, buffer.unpack_to_dest

    def start(self, source_a: str, source_b: str, out: str) -> None:
        self.started = True
        self.formats = {
            "a": self.format_of(source_a), "b": self.format_of(source_b), "pack": self.format_of(out)
        }  # fmt: skip
        self.fpu = self.sfpu = None

    def change(self, unit: Part, old: str, new: str) -> None:
        """Set a part to another format. Raises VerifyError where it is not set to the old one."""
        if self.formats.get(unit) != self.format_of(old):
            raise self.where.fault(
                "V032",
                f"the reconfiguration to {new} names {old} as the current buffer, but it is not",
                "name the current buffer",
            )
        self.set(unit, new)

    def set(self, unit: Part, new: str) -> None:
        self.formats[unit] = self.format_of(new)
        if unit != "pack":
            self.fpu = None

    def check_format(self, op: Op, unit: Part, cb: str) -> None:
        if self.formats.get(unit) != self.format_of(cb):
            unit_name = "packer" if unit == "pack" else f"unpacker (Src{unit.upper()})"
            raise self.where.fault(
                "V032",
                f"{op.name}: the {unit_name} is set to {self.formats.get(unit)}, but {cb} is {self.format_of(cb)}",
                "reconfigure the data format before it",
            )

    def check_init(self, op: Op, numbers: tuple[float, ...]) -> None:
        is_sfpu = op.engine == "sfpu"
        init = self.sfpu if is_sfpu else self.fpu
        if init != (op.init if is_sfpu else op.name, numbers):
            raise self.where.fault("V031", f"{op.name} runs under the init of {init}", "put its own init before it")
