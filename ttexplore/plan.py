"""The facts that passes decide, typed and frozen. `tt.plan.json` is this module's values in JSON form.

Half of the passes only decide facts: they return the program with an extended plan. The plan holds everything that the
emitted files, the backends and the views need, so they work without the IR.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal, TypeVar, get_args

from ttexplore.characters import Printed, visible
from ttexplore.errors import unknown
from ttexplore.notes import Note
from ttexplore.record import JsonObject, Span, replaced

TILE_ROWS = 32
TILE_COLUMNS = 32
# A tile is four faces of 16x16 elements, each contiguous (tt-metal tile layout).
FACE = 16

# The prefix of core values that are sizes. It is reserved.
SIZE_PREFIX = "size_"
# The values of a core that say how many work items it has, or how many along each axis of a rectangle.
WORK_COUNTS = ("work_count", "x_count", "y_count")

KernelRole = Literal["reader", "compute", "writer"]
KERNEL_ROLES: tuple[KernelRole, ...] = ("reader", "compute", "writer")
# Which NoC a kernel uses: 0 goes right and down, 1 left and up. The compute kernel uses none; the SDK gives it 0.
NOC_OF_ROLE: dict[str, int] = {"reader": 0, "compute": 0, "writer": 1}
# The corner of a rectangle that a multicast on each NoC names first, as it comes there first.
FIRST_CORNERS = ("the upper left corner", "the lower right corner")
# What an export writes, and the only files that a saved exploration may hold.
EXPORTED_FILES = ("reader.cpp", "compute.cpp", "writer.cpp", "main.cpp", "tt.plan.json", "run_ttnn.py")


# The precision that an output is held to: equal to the reference (`exact`), as close as its dtype allows (`full`) or as
# the formats on its way allow, or less than bfloat16.
Precision = Literal["exact", "full", "tf32", "bfloat16", "block_float", "fast", "low_fidelity"]
Policy = Literal[
    "contiguous", "strided", "rectangular", "balanced", "block_linear", "z_order", "match_shard", "explicit"
]
Order = Literal["row_major", "column_major", "block_linear", "z_order"]
Mode = Literal["global", "local_shard"]
# Which cores share what one of them reads: those of a row, those of a column, or those of a rectangle.
Topology = Literal["row", "column", "grid"]
# The kernels that can load an input.
Loader = Literal["reader", "writer"]


@dataclass(frozen=True, slots=True)
class DataFormat:
    """A tile format. `name` is the SDK's name in C++, `ttnn` its name in Python, `dtype` the NumPy (or ml_dtypes) name.

    For formats that NumPy lacks, `dtype` is the smallest dtype that holds their numbers. `tile_bytes` is the size of a
    32x32 tile in L1 and DRAM (source: page sizes of tt-metal's formats).
    """

    name: str
    ttnn: str
    dtype: str
    tile_bytes: int


DATA_FORMATS: dict[str, DataFormat] = {
    "Float16_b": DataFormat("Float16_b", "bfloat16", "bfloat16", 2048),
    "Float32": DataFormat("Float32", "float32", "float32", 4096),
    "Int32": DataFormat("Int32", "int32", "int32", 4096),
    # 16 numbers share an exponent, so elements and strips of a tile have no bytes of their own.
    "Bfp8_b": DataFormat("Bfp8_b", "bfloat8_b", "bfloat16", 1088),
}

# The format that a layout can request instead of the one of the kernel's dtype, and its accepted names.
BLOCK_FLOAT = "Bfp8_b"
BLOCK_FLOAT_NAMES = ("bfp8_b", "bfloat8_b")

# Dtypes of 8 bits and fewer. bfloat16 represents each of their numbers exactly, and every operation on numbers takes
# them as they are, so tiles store them as bfloat16 and the host converts.
SMALL_FLOATS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3b11fnuz",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
)  # fmt: skip
SMALL_WHOLES = ("uint8", "int8", "bool", "int4", "uint4")

FORMAT_OF_DTYPE: dict[str, str] = {
    "bfloat16": "Float16_b",
    "float32": "Float32",
    "int32": "Int32",
    # ttnn 0.81.1 has no float16 tensors: they are stored, and computed with, as bfloat16.
    "float16": "Float16_b",
    **dict.fromkeys((*SMALL_WHOLES, *SMALL_FLOATS), "Float16_b"),
}


@dataclass(frozen=True, slots=True)
class Sharding:
    """How a tensor is divided into shards, each of whole tiles.

    The tensor is treated as a matrix, with leading dimensions folded into the rows: `grid` counts the shards along rows
    and columns, `shard_shape` the elements of each; trailing shards may be shorter. `cores` are the logical coordinates
    of the core of each shard, row by row, or (bank, 0) in DRAM; `order` is the SDK's shard orientation.
    """

    kind: Literal["height", "width", "block"]
    grid: tuple[int, int]
    shard_shape: tuple[int, int]
    cores: tuple[tuple[int, int], ...]
    order: Literal["row_major", "column_major"] = "row_major"


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """How a kernel parameter lies in memory (decided by A1).

    `position` is the parameter's index, `dtype` the kernel's own dtype, `padded_shape` counts elements with the last
    two dimensions rounded up to tiles; a vector of n elements is one row of tiles, [32, n]. `padding` is the content of
    the padding: "zero" if the host fills it and kernels may rely on it, "any" if nothing may rely on it. A `page` is a
    tile, or a row of the last dimension; in the latter case the tensor is row-major and has no padding. `through` says
    how rows are converted to tiles, or tiles to rows: by the compute kernel (``tilize``), or by the reader or writer,
    which moves each run of 16 elements to or from its face (``runs``).
    """

    name: str
    position: int
    role: Literal["input", "output", "inout"]
    shape: tuple[int, ...]
    dtype: str
    data_format: str
    padded_shape: tuple[int, ...]
    padding: Literal["none", "zero", "any"] = "none"
    memory: Literal["dram", "l1"] = "dram"
    arrangement: Literal["interleaved", "sharded"] = "interleaved"
    tile_shape: tuple[int, int] = (TILE_ROWS, TILE_COLUMNS)
    reason: str = ""
    sharding: Sharding | None = None
    page: Literal["tile", "row"] = "tile"
    through: Literal["", "tilize", "runs"] = ""

    @property
    def element_bytes(self) -> int:
        return DATA_FORMATS[self.data_format].tile_bytes // (TILE_ROWS * TILE_COLUMNS)

    def shard_pages(self, core: tuple[int, int]) -> tuple[int | None, ...]:
        """The pages of the tensor in the shard of a core, in order; None past the end of the tensor.

        Raises ValueError for a core without a shard.
        """
        assert self.sharding is not None, "only a sharded tensor has shards"
        shard = divmod(self.sharding.cores.index(core), self.sharding.grid[1])
        rows, columns = self.sharding.shard_shape[0] // TILE_ROWS, self.sharding.shard_shape[1] // TILE_COLUMNS
        all_rows, all_columns = prod(self.padded_shape[:-1]) // TILE_ROWS, self.padded_shape[-1] // TILE_COLUMNS
        tiles = [(shard[0] * rows + r, shard[1] * columns + c) for r in range(rows) for c in range(columns)]
        return tuple(r * all_columns + c if r < all_rows and c < all_columns else None for r, c in tiles)


@dataclass(frozen=True, slots=True)
class CircularBuffer:
    """A circular buffer in the L1 of each core (decided by A2, numbered by C3, final after D5).

    It holds `block_pages` x `stages` pages of one tile each. `producer` and `consumer` are the kernels that push and
    pop. `unpack_to_dest` marks a Float32 buffer that is only copied to DST: exactly, without truncation to TF32.
    `tile_order` is the order of the block's tiles in the buffer. If `row_tiles` is not 0, the buffer holds rows of
    elements instead: each `row_tiles` pages are 32 rows, `row_tiles` tiles wide. `shard_of` names the tensor whose
    shard on the core the buffer aliases, so that nothing is copied; it is empty if the buffer has memory of its own.
    `origin` is the kernel line of the corresponding allocation.

    Buffers with one `index` are one circular buffer of the chip, with one memory: between two kernels, their blocks
    follow each other in it, otherwise at most one of them holds tiles at a time (decided by D5, where the numbers or L1
    run out).
    """

    name: str
    block_pages: int
    stages: int
    data_format: str
    producer: KernelRole
    consumer: KernelRole
    index: int | None = None
    unpack_to_dest: bool = False
    tile_order: Literal["row_major", "column_major"] = "row_major"
    origin: Span | None = None
    reason: str = ""
    shard_of: str = ""
    row_tiles: int = 0

    @property
    def page_bytes(self) -> int:
        return DATA_FORMATS[self.data_format].tile_bytes

    @property
    def pages(self) -> int:
        return self.block_pages * self.stages

    @property
    def total_bytes(self) -> int:
        return self.pages * self.page_bytes

    @property
    def described(self) -> str:
        """All of it but its place in a file: the same wherever the file lies."""
        return repr(dataclasses.replace(self, origin=None))


def chip_buffers(buffers: Sequence[CircularBuffer]) -> tuple[tuple[CircularBuffer, ...], ...]:
    """The circular buffers of the chip, each as the buffers of the plan that share it, in the order of the plan. A
    buffer without a number shares none yet."""
    sharing: dict[int | str, list[CircularBuffer]] = {}
    for buffer in buffers:
        sharing.setdefault(buffer.name if buffer.index is None else buffer.index, []).append(buffer)
    return tuple(map(tuple, sharing.values()))


@dataclass(frozen=True, slots=True)
class AccessorBinding:
    """The argument from which one kernel builds the accessor of a tensor (decided by D2)."""

    kernel: KernelRole
    address_argument: str


@dataclass(frozen=True, slots=True)
class Accessor:
    """How pages of a tensor are addressed (decided by A3, bound by D2).

    `tile_grid` is the padded shape in tiles, leading dimensions in elements; `page_strides` are the strides of its axes
    in pages. A page is one tile; in a row-major tensor it is one row, and the last axis is one page long.
    """

    tensor: str
    tile_grid: tuple[int, ...]
    page_strides: tuple[int, ...]
    page_bytes: int
    pages: int
    bindings: tuple[AccessorBinding, ...] = ()


# The checks follow the pages that every work item stores.
MOST_WORK_ITEMS = 1 << 26
# Partitions other than evenly spaced runs of row-major items, and shared inputs, list the items of each core. So many,
# of a product of matrices, take 3 GB and a minute or two.
MOST_LISTED_ITEMS = 1 << 21


@dataclass(frozen=True, slots=True)
class CoreWork:
    """The work of one core: logical coordinates, the number of work items, the values of its runtime arguments.

    `listed` holds the work items in order if the partition has the form ``list``; otherwise it is empty.
    """

    x: int
    y: int
    items: int
    values: dict[str, int]
    listed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CoreRange:
    """A rectangle of cores in logical coordinates, both corners included."""

    first: tuple[int, int]
    last: tuple[int, int]

    @property
    def cores(self) -> tuple[tuple[int, int], ...]:
        """The cores row by row."""
        (left, top), (right, bottom) = self.first, self.last
        columns, rows = range(left, right + 1), range(top, bottom + 1)
        return tuple([(x, y) for y in rows for x in columns])


@dataclass(frozen=True, slots=True)
class Partition:
    """The assignment of work items to cores (decided by B1).

    `grid` holds the kernel's block counts (x, y, z), without missing axes; work items are numbered row-major:
    ``(z * grid_y + y) * grid_x + x``. `policy` says which core gets which items, `order` in which order it runs them
    (``block_linear`` visits squares of `order_block` by `order_block` blocks).
    `form` says how the items are passed to a core: as ``range``, by work_start, work_count and the constant `step`,
    counted in row-major or column-major order; as ``rectangle``, by a start and a count along x and y; as ``list``, by
    work_count and the items themselves. `items_of` decodes these values. `core_ranges` are the cores that may be used,
    `core_grid` the columns and rows of the grid that contains them.
    """

    grid: tuple[int, ...]
    policy: Policy
    mode: Mode
    core_grid: tuple[int, int]
    cores: tuple[CoreWork, ...]
    arguments: tuple[str, ...]
    reason: str = ""
    order: Order = "row_major"
    order_block: int | None = None
    form: Literal["range", "rectangle", "list"] = "range"
    step: int = 1
    core_ranges: tuple[CoreRange, ...] = ()

    @property
    def work_items(self) -> int:
        return prod(self.grid)

    @property
    def most_work_items(self) -> int:
        """How many work items are lowered, divided among the cores like this."""
        return MOST_WORK_ITEMS if self.form == "range" and self.order != "column_major" else MOST_LISTED_ITEMS

    def with_values(self, values: Mapping[tuple[int, int], dict[str, int]]) -> Partition:
        """This partition with more values, by core."""
        cores = tuple(
            [
                CoreWork(core.x, core.y, core.items, core.values | values[core.x, core.y], core.listed)
                for core in self.cores
            ]
        )
        return dataclasses.replace(self, cores=cores)

    def items_of(self, core: CoreWork) -> Sequence[int]:
        """The work items of a core, in order, decoded from the values of its arguments; as a range where they are
        evenly spaced."""
        match self.form:
            case "range":
                start, count = core.values["work_start"], core.values["work_count"]
                positions = range(start, start + count * self.step, self.step)
                if self.order != "column_major":
                    return positions
                columns, rows, _ = launch_extents(self.grid)
                return [
                    item_number(self.grid, at // rows % columns, at % rows, at // (rows * columns)) for at in positions
                ]
            case "rectangle":
                return rectangle_items(self.grid, core.values, self.order)
            case "list":
                return list(core.listed)


@dataclass(frozen=True, slots=True)
class Multicast:
    """A rectangle of cores that need the same blocks at the same steps: `sender` reads them from DRAM and sends them to
    the other `cores`, which may be none."""

    sender: tuple[int, int]
    cores: CoreRange

    @property
    def receivers(self) -> tuple[tuple[int, int], ...]:
        """The cores that the sender sends to."""
        return tuple([core for core in self.cores.cores if core != self.sender])


@dataclass(frozen=True, slots=True)
class SharedInput:
    """An input of which several cores need the same blocks at the same steps of their loops (decided by B1).

    In each of `multicasts`, one core reads the blocks that arrive in the circular buffer `buffer`. `ready` is the
    number of the semaphore at a sender that counts the receivers with room for the next block, `valid` that of the
    semaphore at each receiver which says that the block has arrived. `read_bytes` are what all cores would read from
    DRAM without sharing, `saved_bytes` what they need not read of it.

    Each core has values, named after the tensor, which `core_values` gives.
    """

    tensor: str
    buffer: str
    topology: Topology
    ready: int
    valid: int
    multicasts: tuple[Multicast, ...]
    read_bytes: int
    saved_bytes: int

    @property
    def includes_sender(self) -> bool:
        """Whether the sender is one of the destinations: the receivers of a part of a row or column form a rectangle
        without it, other receivers do not."""
        return self.topology == "grid"

    @property
    def always_sends(self) -> bool:
        """Whether every sender has receivers."""
        return all(multicast.receivers for multicast in self.multicasts)

    def named(self, value: str) -> str:
        """The name of one of its core values."""
        return f"{self.tensor}_{value}"

    @property
    def semaphores(self) -> tuple[tuple[str, int], ...]:
        """Its semaphores: the last part of each one's name, and its number."""
        return ("ready", self.ready), ("valid", self.valid)

    @property
    def places(self) -> tuple[str, str, str]:
        """The core values, without _x and _y, that are places of cores: the sender, and the corners of the rectangle
        that it sends to."""
        return self.named("sender"), self.named("first"), self.named("last")

    @property
    def core_values(self) -> dict[tuple[int, int], dict[str, int]]:
        """Of each core, whether it `sends`, to how many `receivers`, and its places in logical coordinates."""
        names = (
            self.named("sends"),
            self.named("receivers"),
            *(f"{role}_{axis}" for role in self.places for axis in "xy"),
        )
        values_of: dict[tuple[int, int], dict[str, int]] = {}
        for multicast in self.multicasts:
            for core in multicast.cores.cores:
                values_of[core] = dict(zip(names, (0, 0, *multicast.sender, *core, *core), strict=True))
            receivers = multicast.receivers
            first, last = self._corners(multicast, receivers)
            values = 1, len(receivers), *multicast.sender, *first, *last
            values_of[multicast.sender] = dict(zip(names, values, strict=True))
        return values_of

    def destinations(self, multicast: Multicast) -> tuple[tuple[int, int], tuple[int, int]]:
        """The corners of the rectangle that the sender sends to; its own place if there is nobody."""
        return self._corners(multicast, multicast.receivers)

    def _corners(
        self, multicast: Multicast, receivers: Sequence[tuple[int, int]]
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        if self.includes_sender or not receivers:
            return multicast.cores.first, multicast.cores.last
        return receivers[0], receivers[-1]


@dataclass(frozen=True, slots=True)
class PartialSums:
    """A tensor of which several cores update the same blocks, in the same order (decided by B1).

    Each of `chains` lists such cores. The first one reads a block from the tensor into its circular buffer `received`;
    each updates it, into its circular buffer `sent`, and sends that to `received` of the next one; the last one stores
    the block to the tensor. So the updates have a fixed order, that of the chain. `received` holds one block, so that
    it lies at the same address on all cores. `room` is the number of the semaphore which says that the next core has
    room for a block, `arrived` that of the semaphore which says that the block of the core before has arrived.
    `steps` is the number of blocks that each core of a chain updates, `block_bytes` are those of a block.

    Each core has values, named after the tensor, which `core_values` gives.
    """

    tensor: str
    received: str
    sent: str
    room: int
    arrived: int
    chains: tuple[tuple[tuple[int, int], ...], ...]
    steps: tuple[int, ...]
    block_bytes: int

    def named(self, value: str) -> str:
        """The name of one of its core values."""
        return f"{self.tensor}_{value}"

    @property
    def semaphores(self) -> tuple[tuple[str, int], ...]:
        """Its semaphores: the last part of each one's name, and its number."""
        return ("room", self.room), ("arrived", self.arrived)

    @property
    def sent_bytes(self) -> int:
        """What all cores together send to others."""
        hops = (steps * (len(chain) - 1) for chain, steps in zip(self.chains, self.steps, strict=True))
        return sum(hops) * self.block_bytes

    @property
    def places(self) -> tuple[str, str]:
        """The core values, without _x and _y, that are places of cores: those before and after it in its chain."""
        return self.named("previous"), self.named("next")

    @property
    def neighbours(self) -> dict[tuple[int, int], tuple[tuple[int, int] | None, tuple[int, int] | None]]:
        """The cores before and after each core in its chain, None at the ends."""
        return {
            core: (before, after)
            for chain in self.chains
            for before, core, after in zip((None, *chain), chain, (*chain[1:], None), strict=False)
        }

    @property
    def core_values(self) -> dict[tuple[int, int], dict[str, int]]:
        """Of each core, whether it `receives` and `sends` blocks, and the cores before and after it in logical
        coordinates; its own at the ends of a chain."""
        values_of: dict[tuple[int, int], dict[str, int]] = {}
        for core, (before, after) in self.neighbours.items():
            values_of[core] = {
                self.named("receives"): int(before is not None),
                self.named("sends"): int(after is not None),
            }
            for name, peer in zip(self.places, (before or core, after or core), strict=True):
                values_of[core] |= {f"{name}_{axis}": at for axis, at in zip("xy", peer, strict=True)}
        return values_of


def rectangle_items(grid: Sequence[int], values: dict[str, int], order: str) -> list[int]:
    """The work items of the rectangle of blocks that a core's values describe, in row-major or column-major order."""
    left, top = values["x_start"], values.get("y_start", 0)
    xs, ys = range(left, left + values["x_count"]), range(top, top + values.get("y_count", 1))
    blocks = [(x, y) for x in xs for y in ys] if order == "column_major" else [(x, y) for y in ys for x in xs]
    return [item_number(grid, x, y, z) for z in range(launch_extents(grid)[2]) for x, y in blocks]


def launch_extents(grid: Sequence[int]) -> tuple[int, int, int]:
    """The launch grid along x, y and z; missing axes have one block."""
    x, y, z = (*grid, 1, 1)[:3]
    return x, y, z


def item_number(grid: Sequence[int], x: int, y: int = 0, z: int = 0) -> int:
    """The number of the work item of a block."""
    columns, rows, _ = launch_extents(grid)
    return (z * rows + y) * columns + x


def item_block(grid: Sequence[int], item: int) -> tuple[int, ...]:
    """The block coordinates of a work item, one for each axis of the grid."""
    columns, rows, _ = launch_extents(grid)
    return (item % columns, item // columns % rows, item // (columns * rows))[: len(grid)]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the tile dataflow graph: a tensor in DRAM, a circular buffer, or a kernel."""

    name: str
    kind: Literal["tensor", "circular_buffer", "kernel"]
    label: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """Tiles that flow from one node to another. `tiles_per_item` counts them per work item; None if that varies."""

    source: str
    target: str
    tiles_per_item: int | None = None


@dataclass(frozen=True, slots=True)
class TileGraph:
    """The tile dataflow graph (decided by C3)."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class ComputeConfig:
    """The compute kernel's configuration, with the reason for each choice.

    `dst_tiles` is the number of 32x32 tiles that DST holds in this mode (half-sync: 8 of 16 bits or 4 of 32 bits).
    `accumulate` says how partial sums of an accumulator larger than DST are kept across iterations: `reload` copies
    them back into DST, `l1` lets the packer add in L1. `fast` are the blocks whose exponentials the option `sfpu` has
    made faster and less accurate.
    """

    math_fidelity: Literal["LoFi", "HiFi2", "HiFi3", "HiFi4"]
    fp32_dest_acc_en: bool
    dst_full_sync_en: bool
    math_approx_mode: bool
    dst_tiles: int
    accumulate: Literal["reload", "l1"]
    reasons: tuple[str, ...] = ()
    fast: tuple[str, ...] = ()

    @property
    def half_dst_tiles(self) -> int:
        """The tiles that half of DST holds: the limit for packing rows of tiles at once, even in full-sync mode."""
        return self.dst_tiles // 2 if self.dst_full_sync_en else self.dst_tiles


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several ways to lower a kernel, and its predicted time; None where that is known only when it runs."""

    name: str
    predicted_us: float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen by predicted time, by a step of its own.

    `name` is the option that leaves it open, `candidates` what was compared, and `chosen` the name of one of them. The
    times are those of a closed form of the clock: they hold for comparing the candidates with each other.
    """

    name: str
    candidates: tuple[Candidate, ...]
    chosen: str
    reason: str

    @property
    def summary(self) -> str:
        """What was chosen, with its predicted time and those of the others."""
        times = {candidate.name: candidate.predicted_us for candidate in self.candidates}
        rejected = sorted(us for name, us in times.items() if us is not None and name != self.chosen)
        if (us := times[self.chosen]) is None or not rejected:
            return f"{self.name}: {self.chosen}"
        told = f"{rejected[0]:.1f}" if rejected[0] == rejected[-1] else f"{rejected[0]:.1f} to {rejected[-1]:.1f}"
        return f"{self.name}: {self.chosen}, {us:.1f} us predicted; {told} us for {len(rejected)} others"


@dataclass(frozen=True, slots=True)
class Product:
    """A T.gemm of the kernel, as C2 lowered it: the blocks that it multiplies, and their sizes in tiles.

    `a` and `b` are the circular buffers of the factors, `out` is the block that the product is added to: in DST, or in
    a circular buffer. `rows`, `depth` and `columns` count tiles: `out` has rows x columns tiles, and each is a sum of
    `depth` products of tiles. `transpose_b` says that B's tiles, and their order, are transposed.
    """

    a: str
    b: str
    out: str
    rows: int
    depth: int
    columns: int
    transpose_b: bool = False
    origin: Span | None = None


OperationKind = Literal["engines", "product", "sum", "fast"]


@dataclass(frozen=True, slots=True)
class Sources:
    """What the elements of a tensor that the kernel stores are computed from: the inputs, and the kinds of operations
    that decide how far they may lie from the exact ones: any operation of the `engines`, a `product` on the FPU, a
    `sum` of many elements, a `fast` exponential."""

    tensor: str
    inputs: tuple[str, ...]
    operations: tuple[OperationKind, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel argument. `source` says where its value comes from:

    ``tensor_address``: the address of tensor `of`; ``accessor``: the compile-time words of tensor `of`'s accessor;
    ``core_value``: the core's entry `of` in the partition; ``core_list``: the core's listed work items, always the last
    argument; ``constant``: `value`; ``noc_x`` and ``noc_y``: the coordinates on the NoC of the core at the logical
    coordinates `of`_x and `of`_y in the partition, which only the device knows.
    """

    name: str
    source: Literal["tensor_address", "accessor", "core_value", "core_list", "constant", "noc_x", "noc_y"]
    of: str = ""
    value: int | None = None

    @property
    def value_of(self) -> str:
        """The core value that a kernel reads as this argument, empty for another one."""
        match self.source:
            case "core_value" | "core_list":
                return self.of
            case "noc_x" | "noc_y":
                return f"{self.of}{self.source[-2:]}"
            case _:
                return ""

    def place(self, values: Mapping[str, int]) -> tuple[int, int]:
        """The logical coordinates of the core whose coordinate on the NoC it is, from the values of a core."""
        return values[f"{self.of}_x"], values[f"{self.of}_y"]


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """The arguments of one kernel in order (decided by E1)."""

    kernel: KernelRole
    compile_time: tuple[Argument, ...]
    common_runtime: tuple[Argument, ...]
    runtime: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class KernelAnnotation:
    """An option that the kernel sets by annotation, with its line; `taken` unless a user's option overrides it."""

    option: str
    value: str
    tensor: str = ""
    origin: Span | None = None
    taken: bool = True


@dataclass(frozen=True, slots=True)
class Size:
    """A tensor size that is known only at run time, and the value that this plan is bound to."""

    name: str
    value: int

    @property
    def core_value(self) -> str:
        """The name of the core value that passes it to the kernels."""
        return f"{SIZE_PREFIX}{self.name}"


@dataclass(frozen=True, repr=False)
class Plan(Printed):
    """Everything decided so far. Fields are empty until their pass has run. As text it is a summary.

    If the kernel has T.dynamic `sizes`, the numbers in layouts, accessors and partition hold for their current values;
    kernels, buffers and signatures hold for any values.
    """

    kernel: str
    target: str
    options: JsonObject = field(default_factory=JsonObject)
    layouts: tuple[TensorLayout, ...] = ()
    buffers: tuple[CircularBuffer, ...] = ()
    accessors: tuple[Accessor, ...] = ()
    partition: Partition | None = None
    shared: tuple[SharedInput, ...] = ()
    partials: tuple[PartialSums, ...] = ()
    graph: TileGraph | None = None
    compute: ComputeConfig | None = None
    products: tuple[Product, ...] = ()
    sources: tuple[Sources, ...] = ()
    choices: tuple[Choice, ...] = ()
    signature: tuple[KernelSignature, ...] = ()
    notes: tuple[Note, ...] = ()
    annotations: tuple[KernelAnnotation, ...] = ()
    sizes: tuple[Size, ...] = ()

    def __repr__(self) -> str:
        rows = [
            *(("tensors", f"{layout.name}: {layout.role}, {_times(layout.shape)} {layout.dtype}, "
               f"{layout.arrangement} in {layout.memory.upper()}") for layout in self.layouts),
            *(("buffers", f"{buffer.name}: {buffer.stages} blocks of {buffer.block_pages} tiles, {buffer.producer} to "
               f"{buffer.consumer}") for buffer in self.buffers),
        ]  # fmt: skip
        if self.partition is not None:
            items, cores = self.partition.work_items, sum(core.items > 0 for core in self.partition.cores)
            rows.append(("work", f"{items} items on {cores} cores, {self.partition.policy}"))
        for sent in self.shared:
            saved = f"{sent.saved_bytes:,} of {sent.read_bytes:,} bytes not read"
            rows.append(("shared", f"{sent.tensor}: sent {_ALONG[sent.topology]}, {saved}"))
        for sent in self.partials:
            longest = max(map(len, sent.chains))
            rows.append(
                ("partials", f"{sent.tensor}: handed on by up to {longest} cores, in the order of their work items; "
                 f"{sent.sent_bytes:,} bytes sent")
            )  # fmt: skip
        if self.compute is not None:
            width = 32 if self.compute.fp32_dest_acc_en else 16
            dst = f"DST of {self.compute.dst_tiles} tiles of {width} bits"
            rows.append(("compute", f"{self.compute.math_fidelity}, {dst}, accumulate {self.compute.accumulate}"))
        rows += [("choices", choice.summary) for choice in self.choices]
        rows += [("notes", note.text) for note in self.notes]
        heads = [head for head, _ in rows]
        lines = [f"plan of {self.kernel} for {self.target}"]
        lines += [f"  {'' if head in heads[:k] else head:<9}{text}" for k, (head, text) in enumerate(rows)]
        return "\n".join(map(visible, lines))

    @property
    def notes_on_inputs(self) -> dict[str, str]:
        """The notes on tensors that the kernel stores to and whose old contents are an input, by name."""
        return {note.values["tensor"]: note.text for note in self.notes if note.kind == "old contents"}

    def reason(self, *options: str, tensor: str = "", given: bool = False) -> str:
        """The source of these options: ``annotation at f.py:3``, ``option``, or ``default`` unless `given`."""
        about = [
            annotation
            for annotation in self.annotations
            if annotation.option in options and annotation.tensor in ("", tensor)
        ]
        used = next((annotation for annotation in about if annotation.taken), None)
        if used is not None:
            return f"annotation at {used.origin}" if used.origin else "annotation"
        if about:
            return f"option, instead of the annotation{f' at {about[0].origin}' if about[0].origin else ''}"
        return "option" if given else "default"

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """The precision that each output is held to, in parameter order: exact if tiles are only moved; below bfloat16
        if its format, or options for operations that it is computed with, ask for that; for float32, and for what
        integers are cast from, the narrowest format between compute operations."""
        lofi = self.compute is not None and self.compute.math_fidelity == "LoFi"
        narrow_sums = self.options.get("accumulate_dtype") == "bfloat16"
        low: set[OperationKind] = {*(("product",) if lofi else ()), *(("product", "sum") if narrow_sums else ())}
        stored = [buffer for buffer in self.buffers if buffer.consumer == "writer"]
        moved = bool(stored) and all(buffer.producer == "reader" for buffer in stored)
        wide = self.compute is None or self.compute.fp32_dest_acc_en
        narrow: Precision = "full" if wide else "bfloat16"
        for buffer in self.buffers:
            if buffer.consumer == "compute" and buffer.data_format != "Float32" and buffer.producer == "compute":
                narrow = "bfloat16"
            elif buffer.consumer == "compute" and buffer.data_format == "Float32" and not buffer.unpack_to_dest:
                narrow = "tf32" if narrow == "full" else narrow
        fast = self.compute is not None and bool(self.compute.fast)
        operations = {sources.tensor: {*sources.operations} for sources in self.sources}

        def precision(layout: TensorLayout) -> Precision:
            used = operations.get(layout.name, {*get_args(OperationKind)})
            coarse = "low_fidelity" if used & low else "fast" if fast and "fast" in used else None
            if layout.data_format == BLOCK_FLOAT and coarse is None:
                return "block_float"
            if moved or "engines" not in used:
                return "exact"
            if coarse is not None:
                return coarse
            return narrow if layout.data_format in ("Float32", "Int32") or layout.dtype in SMALL_WHOLES else "full"

        layouts = sorted(self.layouts, key=lambda layout: layout.position)
        return tuple(precision(layout) for layout in layouts if layout.role != "input")

    def replace(self, **changes: object) -> Plan:
        """This plan with some fields changed."""
        return replaced(self, **changes)

    @property
    def on_chip(self) -> Plan:
        """This plan with the circular buffers of the chip: one, named after the first, for all that share a number."""
        names: dict[str, str] = {}
        buffers: list[CircularBuffer] = []
        for first, *sharing in chip_buffers(self.buffers):
            name = f"{first.name} and {len(sharing)} more" if sharing else first.name
            names |= {buffer.name: name for buffer in (first, *sharing)}
            buffers.append(dataclasses.replace(first, name=name))
        if self.graph is None or len(buffers) == len(self.buffers):
            return self.replace(buffers=tuple(buffers))
        nodes = {names.get(node.name, node.name): node for node in reversed(self.graph.nodes)}
        tiles: dict[tuple[str, str], int | None] = {}
        for edge in self.graph.edges:
            ends = (names.get(edge.source, edge.source), names.get(edge.target, edge.target))
            both = (tiles.get(ends, 0), edge.tiles_per_item)
            tiles[ends] = None if None in both else sum(count or 0 for count in both)
        graph = TileGraph(
            tuple(dataclasses.replace(node, name=name) for name, node in reversed(nodes.items())),
            tuple(GraphEdge(*ends, number) for ends, number in tiles.items()),
        )
        return self.replace(buffers=tuple(buffers), graph=graph)

    @property
    def size_values(self) -> dict[str, int]:
        """The value of each size by name."""
        return {size.name: size.value for size in self.sizes}

    def layout(self, name: str) -> TensorLayout:
        """The layout of tensor `name`. Raises UsageError."""
        return _found(self.layouts, lambda layout: layout.name, "tensor", name)

    def buffer(self, name: str) -> CircularBuffer:
        """The circular buffer `name`. Raises UsageError."""
        return _found(self.buffers, lambda buffer: buffer.name, "circular buffer", name)

    def accessor(self, tensor: str) -> Accessor:
        """The accessor of `tensor`. Raises UsageError."""
        return _found(self.accessors, lambda accessor: accessor.tensor, "tensor", tensor)

    @property
    def semaphores(self) -> tuple[tuple[int, str], ...]:
        """The semaphores of each core, by number: all are 0 when the program starts."""
        return tuple(
            (number, user.named(name)) for user in (*self.partials, *self.shared) for name, number in user.semaphores
        )

    def kernel_signature(self, kernel: KernelRole) -> KernelSignature:
        """The signature of `kernel`. Raises UsageError."""
        return _found(self.signature, lambda kernel: kernel.kernel, "kernel", kernel)


_ALONG: dict[Topology, str] = {"row": "along rows", "column": "along columns", "grid": "to rectangles"}
_T = TypeVar("_T")


def _times(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "1"


def _found(values: Sequence[_T], named: Callable[[_T], str], noun: str, name: str) -> _T:
    # Asked for very often, of few values: a dict costs more than it saves.
    if isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        name = str.__str__(name)
        for value in values:
            if named(value) == name:
                return value
    raise unknown(noun, name, map(named, values))
