"""The storage of each on-chip value of a kernel, a circular buffer or DST: decided by A2, applied by C1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tvm import tirx

from ttexplore.plan import TILE_COLUMNS, TILE_ROWS, KernelRole
from ttexplore.record import Span

TileOrder = Literal["row_major", "column_major"]


def tile_grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Tile rows and columns of a block, the last ones not always full; a vector is one row of tiles."""
    rows, columns = shape if len(shape) == 2 else (1, shape[0])
    return -(-rows // TILE_ROWS), -(-columns // TILE_COLUMNS)


@dataclass(frozen=True)
class Pipeline:
    """The num_stages that a pipelined loop of the kernel asks for, and the loop's line."""

    stages: int
    span: Span | None


@dataclass(frozen=True)
class StagingBuffer:
    """Storage for one value: a block of tiles in L1 (a circular buffer) or in DST.

    `shape` counts elements, `dtype` is the storage dtype; `order` is the order of the tiles in the buffer.
    `exact` says that no FPU operation reads it, so that float32 can go to DST uncut. `data_format` is that of the
    tensor whose tiles it holds, empty for that of the dtype. `reason` says why a value that has storage already gets
    this one, where that is not plain from the kernel. `rows` says that it holds rows of elements. `pipeline` is what
    the kernel itself asks for where the reader fills the buffer.
    """

    name: str
    kind: Literal["cb", "dst"]
    shape: tuple[int, ...]
    dtype: str
    span: Span | None
    producer: KernelRole = "compute"
    consumer: KernelRole = "compute"
    stages: int = 1
    order: TileOrder = "row_major"
    exact: bool = True
    data_format: str = ""
    reason: str = ""
    rows: bool = False
    pipeline: Pipeline | None = None

    @property
    def tiles(self) -> int:
        rows, columns = self.tile_grid
        return rows * columns

    @property
    def tile_grid(self) -> tuple[int, int]:
        return tile_grid(self.shape)


@dataclass(frozen=True)
class TensorMove:
    """How a copy moves a region of a tensor: whether it leaves zeros in the block below the region and to the right of
    it, and whether the elements move one by one."""

    zero_rows: bool
    zero_columns: bool
    by_elements: bool


# A tile copy: source, target, and whether it transposes.
TileCopy = tuple[str, str, bool]


@dataclass(frozen=True)
class Staging:
    """All staging buffers by name, and what each statement of the kernel is to use.

    `reads` and `writes` map (statement, original buffer) to the name of the buffer to use instead; `before` and
    `after` list the tile copies to insert around a statement.
    """

    buffers: Mapping[str, StagingBuffer]
    reads: Mapping[tuple[tirx.Stmt, tirx.Buffer, str], str]
    writes: Mapping[tuple[tirx.Stmt, tirx.Buffer], str]
    before: Mapping[tirx.Stmt, Sequence[TileCopy]]
    after: Mapping[tirx.Stmt, Sequence[TileCopy]]
