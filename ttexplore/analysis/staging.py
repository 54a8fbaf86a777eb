"""Decide the storage of each on-chip value: a circular buffer or DST. Part of A2.

One kernel pushes to a circular buffer and one pops from it. A value that is loaded and then changed, or that both the
compute kernel and the writer use, therefore becomes several buffers with tile copies between them. So does a float32
value that the FPU multiplies and that is also stored or copied as float32, because the latter must stay exact.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, TypeGuard, Unpack

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import attribute, dtype_of, regions, runs, shape_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import (
    Web,
    accesses,
    is_on_chip,
    is_parallel,
    load_role,
    loads_of,
    nest_of,
    parallel_body,
    webs,
)
from ttexplore.ir.names import DST, unused_name
from ttexplore.ir.operations.gathers import is_rearranged
from ttexplore.ir.operations.reductions import reduction_of, runs_on_fpu
from ttexplore.ir.operations.storage import Pipeline, Staging, StagingBuffer, TileCopy, TileOrder
from ttexplore.ops import language as tl
from ttexplore.ops.small import is_small
from ttexplore.ops.storage import instead_of
from ttexplore.options import Engine
from ttexplore.plan import (
    BLOCK_FLOAT,
    DATA_FORMATS,
    FORMAT_OF_DTYPE,
    TILE_COLUMNS,
    KernelRole,
    TensorLayout,
)

# Roles of operands that only operations on circular buffers read.
_FROM_CIRCULAR_BUFFERS = ("A", "B", "row", "column", "scalar", "transposed", "reduced", "tiles")
# Roles of element-wise operands.
_OF_ELEMENTS = ("element", "row", "column", "scalar", "transposed", "tiles")

# A use of a buffer by a statement, in a role; a statement and a buffer that it writes.
_Read = tuple[tirx.Stmt, tirx.Buffer, str]
_Write = tuple[tirx.Stmt, tirx.Buffer]

# The depth of buffers that move blocks, if neither the kernel nor an option sets it.
DEFAULT_STAGES = 2


@dataclass
class _Draft:
    """A Staging under construction. `tensors` are names that no buffer may take."""

    tensors: frozenset[str]
    buffers: dict[str, StagingBuffer] = field(default_factory=dict[str, StagingBuffer])
    reads: dict[_Read, str] = field(default_factory=dict[_Read, str])
    writes: dict[_Write, str] = field(default_factory=dict[_Write, str])
    before: dict[tirx.Stmt, list[TileCopy]] = field(default_factory=dict[tirx.Stmt, list[TileCopy]])
    after: dict[tirx.Stmt, list[TileCopy]] = field(default_factory=dict[tirx.Stmt, list[TileCopy]])

    def add(self, buffer: StagingBuffer) -> str:
        unique = unused_name(buffer.name, self.buffers.keys() | self.tensors | {DST})
        self.buffers[unique] = replace(buffer, name=unique)
        return unique

    def decided(self) -> Staging:
        return Staging(self.buffers, self.reads, self.writes, self.before, self.after)


@dataclass(frozen=True)
class Held:
    """How the tiles of a tensor store its elements: the storage dtype and the tile format. `loaded_by` is the kernel
    that loads its blocks: where a kernel also stores some, the writer, because it knows when they have arrived."""

    dtype: str
    data_format: str
    loaded_by: KernelRole = "reader"


def _layout_dtype(layout: TensorLayout) -> str:
    if layout.data_format == FORMAT_OF_DTYPE[layout.dtype]:
        return storage_dtype(layout.dtype)
    return DATA_FORMATS[layout.data_format].dtype


def storage_dtype(dtype: str) -> str:
    """The dtype in which the chip stores a kernel dtype. Raises KeyError for a dtype without a tile format.

    One of 8 bits or fewer stays what it is: it is stored as bfloat16, but with its own numbers only.
    """
    return dtype if is_small(dtype) else DATA_FORMATS[FORMAT_OF_DTYPE[dtype]].dtype


def plan_staging(
    function: tirx.PrimFunc, stages: int | None, layouts: Sequence[TensorLayout], engine: Engine = "auto",
    by_elements: Collection[tirx.Stmt] = (),
) -> Staging:  # fmt: skip
    """Decide the storage of every on-chip value of a kernel whose tensors have these layouts.

    A block that goes through tilize gets a circular buffer of rows in addition to that of tiles, and a vector in a
    column of tiles one of a row, unless the copy is one of those that move single elements, `by_elements`. `stages` is
    the depth of the buffers that the reader fills; None leaves it to the kernel.
    """
    draft = _Draft(frozenset(layout.name for layout in layouts))
    tensors = {
        layout.name: Held(
            _layout_dtype(layout), layout.data_format, "writer" if layout.role == "inout" else "reader"
        )
        for layout in layouts
    }  # fmt: skip
    tilized = frozenset(layout.name for layout in layouts if layout.through == "tilize")
    pipelines, loops = _pipelines(function), _loops_around(function)
    all_webs = webs(function)
    columns = _column_vectors(all_webs)
    for_fpu = _reads_of_fpu(all_webs, loops) if engine == "fpu" else frozenset[_Read]()
    for web in all_webs:
        check_block(web.buffer)
        _Web(web, draft, pipelines, loops, stages, tensors, id(web) in columns, engine, for_fpu).place(
            tilized, by_elements
        )
    return draft.decided()


def _column_vectors(all_webs: Sequence[Web]) -> set[int]:
    """The webs of vectors that lie in columns of tiles, by id: those that a reduction along rows makes, and those that
    are computed with such, element by element. The others are rows of tiles."""
    leaders = {id(web): id(web) for web in all_webs}

    def leader(web: int) -> int:
        while leaders[web] != web:
            leaders[web] = web = leaders[leaders[web]]
        return web

    seeds: list[int] = []
    together: dict[tirx.Stmt, int] = {}
    for web in all_webs:
        if len(shape_of(web.buffer)) != 1:
            continue
        for statement in web.writes:
            reduction = reduction_of(statement)
            if reduction is not None and reduction.rank == 2 and reduction.along_rows:
                seeds.append(id(web))
        touched = [*web.writes, *(read for read, role in web.reads if role in ("element", "source", "tiles"))]
        for statement in touched:
            moved = runs(statement, tl.COPY, tl.COPY_TILES) and all(
                is_on_chip(region.source) for region in regions(statement)
            )
            if moved or (is_parallel(statement) and len(parallel_body(statement)[0]) == 1):
                leaders[leader(id(web))] = leader(together.setdefault(statement, id(web)))
    columns = {leader(seed) for seed in seeds}
    return {id(web) for web in all_webs if leader(id(web)) in columns}


def _pipelines(function: tirx.PrimFunc) -> dict[tirx.Stmt, Pipeline | None]:
    """The innermost pipelined loop around each statement, or None."""
    pipelines: dict[tirx.Stmt, Pipeline | None] = {}

    def visit(body: tirx.Stmt, around: Pipeline | None) -> None:
        for statement in statements(body):
            pipelines[statement] = around
            if isinstance(statement, tirx.For) and not is_parallel(statement):
                stages = dict(statement.annotations).get("num_stages")
                visit(statement.body, around if stages is None else Pipeline(int(stages), span_of(statement)))

    visit(function.body, None)
    return pipelines


def _loops_around(function: tirx.PrimFunc) -> dict[tirx.Stmt, tuple[int, ...]]:
    """The loops around each statement, numbered, outermost first."""
    loops_of: dict[tirx.Stmt, tuple[int, ...]] = {}

    def visit(body: tirx.Stmt, loops: tuple[int, ...]) -> None:
        for statement in statements(body):
            loops_of[statement] = loops
            if isinstance(statement, tirx.For) and not is_parallel(statement):
                visit(statement.body, (*loops, len(loops_of)))

    visit(function.body, ())
    return loops_of


def check_block(buffer: tirx.Buffer) -> None:
    """Raise Unsupported, at its allocation, for an on-chip buffer with a dtype that tiles do not support."""
    if dtype_of(buffer) not in FORMAT_OF_DTYPE:
        raise Unsupported(
            "L009",
            f"{buffer.name} is {dtype_of(buffer)}: no tile format supports this dtype",
            hint=instead_of(dtype_of(buffer)),
            span=span_of(buffer),
        )


class _Depth(TypedDict):
    """How deep a staging buffer is, and the loop that asks for it."""

    stages: int
    pipeline: Pipeline | None


class _StagingFacts(TypedDict, total=False):
    """What a staging buffer may have besides its name and kind."""

    shape: tuple[int, ...]
    dtype: str
    producer: KernelRole
    consumer: KernelRole
    stages: int
    order: TileOrder
    exact: bool
    data_format: str
    reason: str
    rows: bool
    pipeline: Pipeline | None


class _Web:
    """Decides the storage of one web."""

    def __init__(
        self, web: Web, draft: _Draft, pipelines: dict[tirx.Stmt, Pipeline | None],
        loops: dict[tirx.Stmt, tuple[int, ...]], stages: int | None, tensors: dict[str, Held], column: bool,
        engine: Engine, for_fpu: frozenset[_Read],
    ) -> None:  # fmt: skip
        self.for_fpu = for_fpu
        self.positions = {statement: position for position, statement in enumerate(loops)}
        self.web, self.draft, self.stages = web, draft, stages
        self.pipelines, self.loops, self.tensors = pipelines, loops, tensors
        self.name, self.shape = str(web.buffer.name), shape_of(web.buffer)
        self.column = column
        self.engine: Engine = engine
        self.filled_for: dict[str, list[tirx.Stmt]] = {}
        if column:
            self.shape = (*self.shape, 1)
        self.dtype = storage_dtype(dtype_of(web.buffer))
        # A buffer that a pass has added belongs to the statement that it was added for.
        self.span = span_of(web.buffer) or next((span for write in web.writes if (span := span_of(write))), None)
        self.loads = [write for write in web.writes if _is_load(write)]
        self.computed = [write for write in web.writes if not _is_load(write)]
        self.stores = [read for read, role in web.reads if role == "source" and _is_store(read)]
        self.uses = [(read, role) for read, role in web.reads if not any(read.same_as(store) for store in self.stores)]

    def place(self, tilized: frozenset[str], by_elements: Collection[tirx.Stmt]) -> None:
        self._place()
        if self.column:
            # In tensors vectors are rows of tiles. Single elements lie anywhere.
            for load in self.loads:
                if load not in by_elements:
                    self._load_row(load)
            for store in self.stores:
                if store not in by_elements:
                    self._store_row(store)
            for write in self.computed:
                if _is_reduced_along_columns(write):
                    self._reduce_row(write)
        loads, stores = (
            [
                copy for copy in copies
                if not is_rearranged(copy) and str(_tensor(copy).name) in tilized and copy not in by_elements
            ]
            for copies in (self.loads, self.stores)
        )  # fmt: skip
        straight = [store for store in stores if self._is_straight(store)]
        for load in loads:
            if not straight:
                self._load_rows(load)
        for store in stores:
            if loads and store in straight:
                # A block that is loaded and stored as rows is never in tiles.
                name = self.draft.reads[(store, self.web.buffer, "source")]
                self.draft.buffers[name] = replace(self.draft.buffers[name], rows=True)
            else:
                self._store_rows(store)

    def _is_straight(self, store: tirx.Stmt) -> bool:
        """Whether the reader fills the buffer that the writer stores from."""
        name = self.draft.reads[(store, self.web.buffer, "source")]
        return self.draft.buffers[name].producer == "reader"

    def _load_row(self, load: tirx.Stmt) -> None:
        """Let the reader fill a row of tiles, and the compute kernel the column from it."""
        key = (load, self.web.buffer)
        name = self.draft.writes[key]
        column = self.draft.buffers[name]
        self.draft.buffers[name] = replace(column, producer="compute", stages=1, pipeline=None)
        self.draft.writes[key] = self._add(
            f"{name}_row", "cb", producer=self._loaded(load).loaded_by, stages=column.stages,
            pipeline=column.pipeline, dtype=column.dtype, data_format=column.data_format,
            shape=self.shape[:1],
            reason=f"a row of tiles of {_tensor(load).name}, which the compute kernel turns into a column",
        )  # fmt: skip
        self.draft.after.setdefault(load, []).insert(0, (self.draft.writes[key], name, True))

    def _reduce_row(self, write: tirx.Stmt) -> None:
        """Let a reduction along columns make a row of tiles, and the column from it."""
        key = (write, self.web.buffer)
        name = self.draft.writes[key]
        column = self.draft.buffers[name]
        self.draft.writes[key] = self._add(
            f"{name}_row", "cb", dtype=column.dtype, data_format=column.data_format, shape=self.shape[:1],
            reason="a row of tiles, as a reduction along columns makes it, which becomes a column",
        )  # fmt: skip
        self.draft.after.setdefault(write, []).insert(0, (self.draft.writes[key], name, True))

    def _store_row(self, store: tirx.Stmt) -> None:
        """Let the compute kernel fill a row of tiles from the column, and the writer store it."""
        key = (store, self.web.buffer, "source")
        name = self.draft.reads[key]
        column = self.draft.buffers[name]
        self.draft.buffers[name] = replace(column, consumer="compute", stages=1)
        self.draft.reads[key] = self._add(
            f"{name}_row", "cb", consumer="writer", stages=column.stages, dtype=column.dtype,
            data_format=column.data_format, shape=self.shape[:1],
            reason=f"a row of tiles of {_tensor(store).name}, which the compute kernel makes of a column",
        )  # fmt: skip
        self.draft.before.setdefault(store, []).append((name, self.draft.reads[key], True))

    def _load_rows(self, load: tirx.Stmt) -> None:
        """Let the reader fill a buffer of rows, which the compute kernel converts into the buffer of tiles."""
        key = (load, self.web.buffer)
        name = self.draft.writes[key]
        tiles = self.draft.buffers[name]
        reason = f"rows of {_tensor(load).name}, which the compute kernel converts to tiles"
        # One kernel packs and uses the tiles, so a second stage would stay empty.
        stages = tiles.stages if tiles.consumer == "writer" else 1
        self.draft.buffers[name] = replace(tiles, producer="compute", stages=stages, pipeline=None)
        self.draft.writes[key] = self._add(
            f"{name}_rows", "cb", producer=self._loaded(load).loaded_by, stages=tiles.stages,
            pipeline=tiles.pipeline, dtype=tiles.dtype, data_format=tiles.data_format,
            order=tiles.order, rows=True, reason=reason,
        )  # fmt: skip
        self.draft.after.setdefault(load, []).insert(0, (self.draft.writes[key], name, False))

    def _store_rows(self, store: tirx.Stmt) -> None:
        """Let the compute kernel convert the buffer of tiles into a buffer of rows, which the writer stores."""
        key = (store, self.web.buffer, "source")
        name = self.draft.reads[key]
        tiles = self.draft.buffers[name]
        reason = f"rows of {_tensor(store).name}, which the compute kernel converts from tiles"
        stages = tiles.stages if tiles.producer == "reader" else 1
        self.draft.buffers[name] = replace(tiles, consumer="compute", stages=stages)
        self.draft.reads[key] = self._add(
            f"{name}_rows", "cb", consumer="writer", stages=tiles.stages, dtype=tiles.dtype,
            data_format=tiles.data_format, rows=True, reason=reason,
        )  # fmt: skip
        self.draft.before.setdefault(store, []).append((name, self.draft.reads[key], False))

    def _place(self) -> None:
        if self._is_loaded_for_its_uses():
            self._place_loaded(self.loads[0])
        elif self._is_plain_output():
            self._place_output()
        elif self._is_plain_operand():
            self._place_operand()
        else:
            self._place_general()

    # Kinds of webs

    def _is_loaded_for_its_uses(self) -> bool:
        """Whether one load gives the value for all reads of the same iteration, so that they can share its block."""
        if self.computed or len(self.loads) != 1 or not self._same_format(self.loads[0]):
            return False
        around = self.loops[self.loads[0]]
        return all(self.loops[read][: len(around)] == around for read, _ in self.web.reads)

    def _same_format(self, load: tirx.Stmt) -> bool:
        """Whether the tiles of the tensor can be used as they are: same dtype, or a narrower format."""
        loaded = self._loaded(load)
        return (
            loaded.dtype == self.dtype
            or (loaded.data_format == BLOCK_FLOAT and self.dtype in ("bfloat16", "float32"))
            or (is_small(loaded.dtype) and self.dtype == "bfloat16")
        )

    def _loaded(self, load: tirx.Stmt) -> Held:
        return self._held(load)

    def _stored(self, store: tirx.Stmt) -> Held:
        return self._held(store)

    def _held(self, copy: tirx.Stmt) -> Held:
        """How what is loaded or stored holds its elements: a tensor, or a block that the writer rearranges."""
        if is_rearranged(copy):
            return Held(self.dtype, FORMAT_OF_DTYPE[dtype_of(self.web.buffer)], "writer")
        return self.tensors[str(_tensor(copy).name)]

    def _plain_write(self) -> bool:
        """Whether one statement other than a gemm writes the value, once and without reading it."""
        if self.loads or len(self.computed) != 1:
            return False
        write = self.computed[0]
        if runs(write, tl.GEMM):
            return False
        if is_parallel(write):
            body = nest_of(write)[1]
            stores = [statement for statement in body if isinstance(statement, tirx.BufferStore)]
            if sum(store.buffer.same_as(self.web.buffer) for store in stores) > 1:
                return False
            if any(load.source.same_as(self.web.buffer) for statement in body for load in loads_of(statement.value)):
                return False
        return all(a.kind == "write" for a in accesses(write) if a.buffer.same_as(self.web.buffer))

    def _is_plain_output(self) -> bool:
        if not self._plain_write() or self.uses or len(self.stores) != 1:
            return False
        if not self._used_where_written(self.stores[0]):
            return False
        stored = self._stored(self.stores[0]).dtype
        narrower = self.dtype == "bfloat16" and stored == "float32"
        other_kind = stored != self.dtype and ("int32" in (stored, self.dtype) or is_small(stored))
        return not narrower and not other_kind

    def _is_plain_operand(self) -> bool:
        reads = [read for read, _ in self.web.reads]
        return (
            self._plain_write()
            and any(role in _FROM_CIRCULAR_BUFFERS for _, role in self.uses)
            and all(map(self._used_where_written, reads))
        )

    def _used_where_written(self, read: tirx.Stmt) -> bool:
        """Whether `read` runs once per write: a circular buffer is drained as often as it is filled."""
        return all(self.loops[write] == self.loops[read] for write in self.web.writes)

    # Placement

    def _add(self, name: str, kind: Literal["cb", "dst"], **facts: Unpack[_StagingFacts]) -> str:
        return self.draft.add(replace(StagingBuffer(name, kind, self.shape, self.dtype, self.span), **facts))

    def _add_for(self, use: tirx.Stmt, name: str, **facts: Unpack[_StagingFacts]) -> str:
        """A circular buffer that is filled for one use and drained by it. Uses that want the same share one: it is
        empty between them. After a nest that changes what it reads, there is another one: the nest packs to it."""
        candidate = replace(StagingBuffer(name, "cb", self.shape, self.dtype, self.span), **facts)
        for buffer_name, uses in self.filled_for.items():
            changed = any(self.positions[read] < self.positions[use] for read in uses if read in self.computed)
            original = replace(self.draft.buffers[buffer_name], name=name)
            if original == candidate and use not in uses and not changed:
                uses.append(use)
                return buffer_name
        added_name = self.draft.add(candidate)
        self.filled_for[added_name] = [use]
        return added_name

    def _input_depth(self, load: tirx.Stmt) -> _Depth:
        """The depth of a buffer that the reader fills, and the loop that requests it."""
        if self._loaded(load).loaded_by == "writer":
            # Between two loads the writer stores, so no load runs ahead.
            return {"stages": 1, "pipeline": None}
        around = self.pipelines.get(load)
        pipeline = around if around is not None and around.stages else None
        return {"stages": self.stages or (pipeline.stages if pipeline else DEFAULT_STAGES), "pipeline": pipeline}

    def _place_loaded(self, load: tirx.Stmt) -> None:
        home = self._loaded(load)
        depth = self._input_depth(load)
        straight = not self.uses and len(self.stores) == 1 and self._used_where_written(self.stores[0])
        straight = straight and home.loaded_by == "reader"
        if straight and replace(self._stored(self.stores[0]), loaded_by="reader") == home:
            name = self._add(
                self.name, "cb", producer="reader", consumer="writer", dtype=home.dtype, data_format=home.data_format,
                **depth,
            )  # fmt: skip
        else:
            transposed = (
                bool(self.uses) and all(_is_transposed_b(read, role) for read, role in self.uses) and not self.stores
            )
            name = self._add(
                self.name, "cb", producer=home.loaded_by, consumer="compute", exact=self._exact(),
                order="column_major" if transposed else "row_major", dtype=home.dtype, data_format=home.data_format,
                **depth,
            )  # fmt: skip
            self._store_from(name)
        self.draft.writes[(load, self.web.buffer)] = name
        for store in self.stores:
            self.draft.reads.setdefault((store, self.web.buffer, "source"), name)
        self._use_from(name)

    def _place_output(self) -> None:
        store = self.stores[0]
        stored = self._stored(store)
        name = self._add(
            self.name,
            "cb",
            consumer="writer",
            stages=DEFAULT_STAGES,
            dtype=stored.dtype,
            data_format=stored.data_format,
        )
        self.draft.writes[(self.computed[0], self.web.buffer)] = name
        self.draft.reads[(store, self.web.buffer, "source")] = name

    def _place_operand(self) -> None:
        transposed = all(_is_transposed_b(read, role) for read, role in self.uses) and not self.stores
        order: TileOrder = "column_major" if transposed else "row_major"
        name = self._add(self.name, "cb", exact=self._exact(), order=order)
        self.draft.writes[(self.computed[0], self.web.buffer)] = name
        self._store_from(name)
        self._use_from(name)

    def _place_general(self) -> None:
        name = self._add(self.name, "dst")
        for write in self.computed:
            self.draft.writes[(write, self.web.buffer)] = name
        for load in self.loads:
            loaded = self._loaded(load)
            entry = self._add(
                f"{self.name}_in", "cb", producer=loaded.loaded_by, dtype=loaded.dtype, data_format=loaded.data_format,
                **self._input_depth(load),
            )  # fmt: skip
            self.draft.writes[(load, self.web.buffer)] = entry
            self.draft.after.setdefault(load, []).append((entry, name, False))
        self._store_from(name)
        self._use_from(name)

    def _store_from(self, name: str) -> None:
        """Give each store its own buffer, which the compute kernel packs."""
        for store in self.stores:
            stored = self._stored(store)
            leaving = self._add(
                f"{self.name}_out",
                "cb",
                consumer="writer",
                stages=DEFAULT_STAGES,
                dtype=stored.dtype,
                data_format=stored.data_format,
            )
            self.draft.before.setdefault(store, []).append((name, leaving, False))
            self.draft.reads[(store, self.web.buffer, "source")] = leaving

    def _use_from(self, name: str) -> None:
        """Let the uses in the compute kernel read the buffer, or an operand buffer if they need another form."""
        home = self.draft.buffers[name]
        also_exact = home.kind == "cb" and self._is_kept_whole()
        reason = f"the FPU reads float32 as TF32, and {self.name} is also used exactly" if also_exact else ""
        # A nest that changes a block reads it from elsewhere only for the FPU.
        changes = [(write, "element") for write in self.computed if (write, self.web.buffer, "element") in self.for_fpu]
        for read, role in sorted([*self.uses, *changes], key=lambda use: self.positions[use[0]]):
            key = (read, self.web.buffer, role)
            if self._is_turned(read, role):
                operand = name
                if home.kind == "dst":
                    operand = self._add_for(read, f"{self.name}_operand", exact=self._keeps_whole(read, role))
                    self._copy_before(read, name, operand, transpose=False)
                turned = self._add_for(read, f"{self.name}_transposed", shape=self._turned_shape(), exact=role != "A")
                self._copy_before(read, operand, turned, transpose=True)
                self.draft.reads[key] = turned
            elif (role in _FROM_CIRCULAR_BUFFERS or key in self.for_fpu) and not self._serves(home, read, role):
                order: TileOrder = "column_major" if _is_transposed_b(read, role) else "row_major"
                needs_whole = role in ("row", "scalar", "tiles") or (role == "column" and self.column)
                exact = (needs_whole or role == "reduced") and self._keeps_whole(read, role)
                operand = self._add_for(read, f"{self.name}_operand", order=order, exact=exact, reason=reason)
                if not self._is_still_filled(operand, read):
                    self._copy_before(read, name, operand, transpose=False)
                self.draft.reads[key] = operand
            else:
                self.draft.reads[key] = name

    def _is_turned(self, read: tirx.Stmt, role: str) -> bool:
        """Whether a use needs the transposed block. A vector is a row of tiles, so a column vector is transposed."""
        if role == "A":
            return bool(attribute(read, "transpose_A"))
        if self.column:
            return role == "row"
        return role == "transposed" or (role == "column" and len(self.shape) == 1)

    def _turned_shape(self) -> tuple[int, ...]:
        if self.column:
            return self.shape[:1]
        return self.shape[::-1] if len(self.shape) == 2 else (self.shape[0], TILE_COLUMNS)

    def _is_still_filled(self, operand: str, read: tirx.Stmt) -> bool:
        """Whether the use before this one, in the same sequence, was given the same value in this buffer."""
        earlier = [use for use in self.filled_for[operand] if self.positions[use] < self.positions[read]]
        if not earlier or self.loops[earlier[-1]] != self.loops[read]:
            return False
        return not any(
            self.positions[earlier[-1]] <= self.positions[write] < self.positions[read] for write in self.web.writes
        )

    def _copy_before(self, statement: tirx.Stmt, source: str, target: str, *, transpose: bool) -> None:
        self.draft.before.setdefault(statement, []).append((source, target, transpose))

    def _serves(self, home: StagingBuffer, read: tirx.Stmt, role: str) -> bool:
        """Whether an operation on circular buffers can read this buffer without truncating the value for other uses."""
        cuts = role in ("A", "B") or not (role in ("source", "tiles") or self._keeps_whole(read, role))
        return home.kind == "cb" and self._order_fits(home, read, role) and not (cuts and self._is_kept_whole())

    def _is_kept_whole(self) -> bool:
        """Whether a float32 value must stay exact, because it is copied as float32 or used element by element.

        The tiles of a circular buffer that the FPU reads become TF32, even if they are only copied to DST. FPU operands
        therefore get their own buffers, which the compute kernel fills from the exact one. This costs L1 and tile
        copies, but no second transfer from DRAM.
        """
        if self.dtype != "float32":
            return False
        copied = [_tensor(store) for store in self.stores]
        copied += [regions(read)[1].source for read, role in self.uses if role == "source"]
        elements = any(self._keeps_whole(read, role) for read, role in self.uses)
        return elements or any(dtype_of(target) == "float32" for target in copied)

    @staticmethod
    def _order_fits(home: StagingBuffer, read: tirx.Stmt, role: str) -> bool:
        return (home.order == "column_major") == _is_transposed_b(read, role)

    def _exact(self) -> bool:
        if self._is_kept_whole():
            return True
        return all(role == "source" or self._keeps_whole(read, role) for read, role in self.uses)

    def _keeps_whole(self, read: tirx.Stmt, role: str) -> bool:
        """Whether what reads the value takes float32 as it is."""
        if (read, self.web.buffer, role) in self.for_fpu:
            return False
        if role != "reduced":
            return role in _OF_ELEMENTS
        reduction = reduction_of(read)
        return reduction is not None and not runs_on_fpu(reduction, self.dtype, self.engine)


def _is_reduced_along_columns(write: tirx.Stmt) -> bool:
    reduction = reduction_of(write)
    return reduction is not None and not reduction.along_rows


def _reads_of_fpu(all_webs: Sequence[Web], loops: Mapping[tirx.Stmt, tuple[int, ...]]) -> frozenset[_Read]:
    """What each T.Parallel reads for sums, differences and products of float32 that the FPU is to compute: those of the
    elements of a block and of the row, the column or the element of another one.

    The FPU reads circular buffers. A block that is made in the same loop, or loaded, is packed to one where it is made;
    what a loop carries on would go there and back for it.
    """
    far = {
        (nest, web.buffer)
        for web in all_webs
        for nest in (*web.writes, *(read for read, _ in web.reads))
        if not all(_is_load(write) or loops[write][: len(loops[nest])] == loops[nest] for write in web.writes)
    }
    operands: set[_Read] = set()
    for nest in filter(is_parallel, loops):
        axis_loops, body = parallel_body(nest)
        variables = [axis_loop.loop_var for axis_loop in axis_loops]
        for store in body:
            if not isinstance(store, tirx.BufferStore | tirx.Bind):
                continue
            for node in nodes_of(store.value):
                if not isinstance(node, tirx.Add | tirx.Sub | tirx.Mul):
                    continue
                turned = _is_broadcast(node.a, variables) and not isinstance(node, tirx.Sub)
                first, second = (node.b, node.a) if turned else (node.a, node.b)
                if not _is_element(first, variables) or not _is_broadcast(second, variables):
                    continue
                if (nest, first.source) not in far:
                    operands |= {(nest, load.source, load_role(load, variables)) for load in (first, second)}
    return frozenset(operands)


def _is_element(side: ir.Expr, variables: Sequence[ir.Var]) -> TypeGuard[ir.TensorLoad]:
    return _is_float32(side) and load_role(side, variables) == "element"


def _is_broadcast(side: ir.Expr, variables: Sequence[ir.Var]) -> TypeGuard[ir.TensorLoad]:
    return _is_float32(side) and load_role(side, variables) in ("row", "column", "scalar")


def _is_float32(side: ir.Expr) -> TypeGuard[ir.TensorLoad]:
    return isinstance(side, ir.TensorLoad) and dtype_of(side.source) == "float32"


def _is_transposed_b(read: tirx.Stmt, role: str) -> bool:
    return role == "B" and bool(attribute(read, "transpose_B"))


def _is_load(statement: tirx.Stmt) -> bool:
    """Whether a statement copies from a tensor into an on-chip buffer; the writer loads rearranged blocks."""
    if runs(statement, tl.GATHER):
        return True
    return runs(statement, tl.COPY) and [is_on_chip(region.source) for region in regions(statement)] == [
        False,
        True,
    ]


def _is_store(statement: tirx.Stmt) -> bool:
    """Whether a statement copies from an on-chip buffer to a tensor; the writer takes what it rearranges."""
    if is_rearranged(statement):
        return True
    return runs(statement, tl.COPY) and [is_on_chip(region.source) for region in regions(statement)] == [
        True,
        False,
    ]


def _tensor(copy: tirx.Stmt) -> tirx.Buffer:
    """The tensor that a copy loads from or stores to."""
    source, target = regions(copy)
    return target.source if is_on_chip(source.source) else source.source
