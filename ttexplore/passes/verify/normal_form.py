"""The predicates that parts of steps establish: the normal form that A0 brings a kernel into, and those after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import elements
from ttexplore.ir.build import arguments, dtype_of, op_name, regions, runs, scope_of, shape_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, nest_of, webs
from ttexplore.ir.names import DST
from ttexplore.ir.operations.groups import BARRIER_SCOPE, is_for_threads
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.operations.scans import scan_of
from ttexplore.ops import language as tl
from ttexplore.ops.op import DST_SCOPE
from ttexplore.ops.small import SMALL_WHOLES, is_small
from ttexplore.passes.verify.predicates import Predicate, Walked, where

_Around = Sequence[tirx.Stmt]
# The dimensions of a matrix.
_MOST_AXES = 2


def _is_in_nest(around: _Around) -> bool:
    return bool(around) and is_parallel(around[-1])


def _always(statement: tirx.Stmt, _: _Around) -> bool:
    return True


def _scans(statement: tirx.Stmt, _: _Around) -> bool:
    reduction = reduction_of(statement)
    return scan_of(statement) is not None or (reduction is not None and reduction.joining.of_bits)


def _is_for_threads(statement: tirx.Stmt, _: _Around) -> bool:
    # What all threads see, as tensor memory, is a block like others.
    is_block = isinstance(statement, tirx.AllocBuffer) and scope_of(statement.buffer) != BARRIER_SCOPE
    return is_for_threads(statement) and not is_block


def _nests(statement: tirx.Stmt, around: _Around) -> bool:
    if not _is_in_nest(around):
        return False
    if isinstance(statement, tirx.Evaluate):
        return op_name(statement) in (tl.COPY.name, tl.FILL.name, tl.GEMM.name, tl.REDUCE.name)
    return not is_parallel(statement)


def _reads_decider(statement: tirx.Stmt, around: _Around) -> bool:
    match statement:
        case tirx.For():
            deciding = [statement.min, statement.extent]
        case tirx.IfThenElse() if not _is_in_nest(around):
            deciding = [statement.condition]
        case tirx.Evaluate() if op_name(statement) in tl.STATEMENTS:
            statement_regions = [argument for argument in arguments(statement) if isinstance(argument, ir.TensorRegion)]
            deciding = [
                bound
                for region in statement_regions
                for interval in elements(region.region)
                for bound in (interval.min, interval.extent)
            ]
        case _:
            return False
    return any(not is_on_chip(load.source) for value in deciding for load in loads_of(value))


def _uses_tensor(statement: tirx.Stmt, around: _Around) -> bool:
    if not _is_in_nest(around):
        return False
    assert isinstance(statement, tirx.Bind | tirx.BufferStore)
    if isinstance(statement, tirx.BufferStore) and not is_on_chip(statement.buffer):
        return True
    return any(not is_on_chip(load.source) for load in loads_of(statement.value))


def _is_no_matrix(statement: tirx.Stmt, _: _Around) -> bool:
    return isinstance(statement, tirx.AllocBuffer) and len(shape_of(statement.buffer)) > _MOST_AXES


def _narrows(statement: tirx.Stmt, _: _Around) -> bool:
    if not runs(statement, tl.COPY):
        return False
    before, after = (dtype_of(region.source) for region in regions(statement))
    return is_small(after) and before != after


def _multiplies_integers(statement: tirx.Stmt, _: _Around) -> bool:
    if not runs(statement, tl.GEMM):
        return False
    return dtype_of(regions(statement)[2].source) in ("int32", *SMALL_WHOLES)


def _joins_results(statement: tirx.Stmt, _: _Around) -> bool:
    reduction = reduction_of(statement)
    return reduction is not None and not reduction.clear


def _unread(walked: Walked) -> Iterator[tirx.Stmt]:
    for web in webs(walked.function):
        # A T.Parallel with several stores may read itself what it has stored.
        if not web.reads and not any(is_parallel(write) and len(nest_of(write)[1]) > 1 for write in web.writes):
            yield web.writes[0]


def _has_own_tiles(statement: tirx.Stmt, _: _Around) -> bool:
    assert isinstance(statement, tirx.AllocBuffer)
    return scope_of(statement.buffer) == DST_SCOPE and statement.buffer.name != DST


LOOPS_ARE_COUNTED = Predicate(
    "each loop knows its number of iterations before it begins", where(_always, tirx.While)
)  # fmt: skip
NO_SCANS = Predicate("no scan and no reduction of bits is left", where(_scans, tirx.Evaluate))
NO_THREAD_GROUPS = Predicate(
    "no statement is for some threads only",
    where(_is_for_threads, tirx.Bind, tirx.IfThenElse, tirx.BufferStore, tirx.Evaluate, tirx.AllocBuffer),
)
NESTS_ARE_FLAT = Predicate(
    "each T.Parallel holds stores and names alone, no branch and no loop",
    where(_nests, tirx.IfThenElse, tirx.For, tirx.Evaluate),
)
DECIDERS_HAVE_NAMES = Predicate(
    "each element of a tensor that decides something has a name",
    where(_reads_decider, tirx.For, tirx.IfThenElse, tirx.Evaluate),
)
NESTS_USE_BLOCKS = Predicate(
    "each T.Parallel reads and stores blocks on the chip alone", where(_uses_tensor, tirx.Bind, tirx.BufferStore)
)
BLOCKS_ARE_MATRICES = Predicate("each block has at most two dimensions", where(_is_no_matrix, tirx.AllocBuffer))
COPIES_KEEP_WIDE_DTYPES = Predicate(
    "no copy converts to a dtype of 8 bits or fewer", where(_narrows, tirx.Evaluate)
)  # fmt: skip
NO_INTEGER_PRODUCTS = Predicate("no T.gemm accumulates in integers", where(_multiplies_integers, tirx.Evaluate))
BRANCHES_ARE_LOOPS = Predicate("no branch is left", where(_always, tirx.IfThenElse))
# A2
RESULTS_ARE_APART = Predicate("each reduction has a buffer for its result alone", where(_joins_results, tirx.Evaluate))
VALUES_ARE_READ = Predicate("each value on the chip is read", _unread)
# D5
VALUES_SHARE_DST = Predicate("all values in DST share its tiles", where(_has_own_tiles, tirx.AllocBuffer))

# What says nothing any more once operations work on tiles, and once there are three kernels.
OF_BLOCK_OPERATIONS = (
    NO_SCANS, NESTS_ARE_FLAT, NESTS_USE_BLOCKS, COPIES_KEEP_WIDE_DTYPES, NO_INTEGER_PRODUCTS, RESULTS_ARE_APART,
)  # fmt: skip
OF_ONE_KERNEL = (LOOPS_ARE_COUNTED, NO_THREAD_GROUPS, DECIDERS_HAVE_NAMES, BRANCHES_ARE_LOOPS)
