"""The tile scheduler of the kernel language: ``while sched.valid():`` goes over the tiles that a block takes."""

from __future__ import annotations

import functools

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.language.api.loops import positive_extent
from ttexplore.language.api.math import ceildiv
from ttexplore.language.api.tile import note_hints
from ttexplore.language.machine import get_num_sms
from ttexplore.language.tracer.builder import Builder, SchedulerTiles, current, index_of, unsupported, whole

_WHAT = "T.PersistentTileScheduler"
_LOOP = "sched.init(block); while sched.valid(): ... sched.next_tile()"


class PersistentTileScheduler:
    """Distributes a grid of tiles over blocks of the launch grid: worker `w` takes each `num_workers`-th tile::

        sched = T.PersistentTileScheduler(m_tiles, n_tiles)
        sched.init(block)
        while sched.valid():
            row, column = sched.m_idx, sched.n_idx
            ...
            sched.next_tile()

    The loop becomes that of T.Persistent over the tiles. `swizzle_size` and `column_major` are the order of the tiles
    on a GPU, which no result depends on; with `cluster_size` rows count clusters of so many tiles.
    """

    def __init__(
        self,
        num_m_tiles: object,
        num_n_tiles: object,
        num_workers: object = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ) -> None:
        """Raises KernelError for anything but integers, Unsupported for a scheduler without state."""
        if not stateful:
            raise unsupported(f"{_WHAT} with stateful=False", f"write {_LOOP}")
        note_hints(_WHAT, {"order": (swizzle_size, column_major) if swizzle_size != 1 else None})
        rows = num_m_tiles if cluster_size == 1 else ceildiv(num_m_tiles, cluster_size)
        self._extents = positive_extent(_WHAT, num_n_tiles), positive_extent(_WHAT, rows)
        workers = get_num_sms() // cluster_size if num_workers is None else num_workers
        self._workers = positive_extent(_WHAT, workers)
        # The worker whose tiles are next, and the depth of the loop that goes over them, with a tile's row, column and
        # number among those of the block.
        self._worker: ir.Expr | None = None
        self._tile: tuple[ir.Var, ir.Var, ir.Var] | None = None
        self._depth = 0

    def init(self, worker_id: object) -> None:
        """Begin with the tiles of a worker."""
        current(_WHAT)
        self._worker = whole(index_of(_WHAT, worker_id))

    def valid(self) -> SchedulerTiles:
        """The condition of the loop over the tiles. Raises KernelError if no loop may begin here."""
        builder = current(_WHAT)
        if self._worker is None or self._tile is not None:
            raise KernelError("K005", f"{_WHAT}: no tiles are left here", hint=f"write {_LOOP}")
        wave = tirx.Var("wave", "int32", builder.tvm_span())
        enter = functools.partial(self._enter, wave)
        return SchedulerTiles(self._extents, (self._workers, self._worker), wave, enter, self._leave)

    def _enter(self, wave: ir.Var, builder: Builder, tile: tuple[ir.Var, ...]) -> None:
        column, row = tile
        self._tile, self._depth = (row, column, wave), len(builder.frames)

    def _leave(self) -> None:
        if self._tile is not None:
            raise KernelError(
                "K005",
                f"{_WHAT}: the loop does not end with next_tile",
                hint="call sched.next_tile() as its last statement",
            )

    def next_tile(self) -> None:
        """End the work on a tile. Raises KernelError outside of a loop over tiles, Unsupported in a branch or loop."""
        builder = current(_WHAT)
        if self._tile is None:
            raise KernelError("K005", f"{_WHAT}: next_tile is outside of a loop over tiles", hint=f"write {_LOOP}")
        if len(builder.frames) != self._depth:
            raise unsupported(
                f"{_WHAT}: next_tile in a branch or an inner loop", "call it once, as the last statement of the loop"
            )
        self._worker = self._tile = None

    @property
    def m_idx(self) -> ir.Expr:
        """The tile's row."""
        return self._place(0)

    @property
    def n_idx(self) -> ir.Expr:
        """The tile's column."""
        return self._place(1)

    def _place(self, axis: int) -> ir.Expr:
        if self._tile is None:
            raise KernelError("K005", f"{_WHAT}: there is no tile outside of the loop", hint=f"write {_LOOP}")
        return self._tile[axis]

    @property
    def current_iter(self) -> ir.Expr:
        """How many tiles the block has done before this one."""
        return self._place(2)

    @property
    def linear_idx(self) -> ir.Expr:
        """The number of the tile. Raises Unsupported: the order of tiles on a GPU is another one."""
        raise unsupported(f"{_WHAT}: the number of a tile", "use sched.m_idx and sched.n_idx")
