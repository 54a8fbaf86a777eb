"""The predicates of the normal form that A0 brings a kernel into."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import elements
from ttexplore.ir.build import arguments, dtype_of, op_name, regions, scope_of, shape_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of
from ttexplore.ir.operations.groups import BARRIER_SCOPE, is_for_threads
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.operations.scans import scan_of
from ttexplore.ops.small import SMALL_WHOLES, is_small
from ttexplore.passes.verify.predicates import Predicate

_Around = Sequence[tirx.Stmt]
# The dimensions of a matrix.
_MOST_AXES = 2


def _is_in_nest(around: _Around) -> bool:
    return bool(around) and is_parallel(around[-1])


def _has_unknown_length(statement: tirx.Stmt, _: _Around) -> bool:
    return isinstance(statement, tirx.While)


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
    return isinstance(statement, tirx.IfThenElse) or (isinstance(statement, tirx.For) and not is_parallel(statement))


def _reads_decider(statement: tirx.Stmt, around: _Around) -> bool:
    match statement:
        case tirx.For():
            deciding = [statement.min, statement.extent]
        case tirx.IfThenElse() if not _is_in_nest(around):
            deciding = [statement.condition]
        case tirx.Evaluate() if op_name(statement).startswith("tl."):
            parts = [one for one in arguments(statement) if isinstance(one, ir.TensorRegion)]
            deciding = [bound for one in parts for part in elements(one.region) for bound in (part.min, part.extent)]
        case _:
            return False
    return any(not is_on_chip(load.source) for value in deciding for load in loads_of(value))


def _uses_tensor(statement: tirx.Stmt, around: _Around) -> bool:
    if not _is_in_nest(around) or not isinstance(statement, tirx.Bind | tirx.BufferStore):
        return False
    if isinstance(statement, tirx.BufferStore) and not is_on_chip(statement.buffer):
        return True
    return any(not is_on_chip(load.source) for load in loads_of(statement.value))


def _is_no_matrix(statement: tirx.Stmt, _: _Around) -> bool:
    return isinstance(statement, tirx.AllocBuffer) and len(shape_of(statement.buffer)) > _MOST_AXES


def _narrows(statement: tirx.Stmt, _: _Around) -> bool:
    if op_name(statement) != "tl.copy":
        return False
    before, after = (dtype_of(region.source) for region in regions(statement))
    return is_small(after) and before != after


def _multiplies_integers(statement: tirx.Stmt, _: _Around) -> bool:
    if op_name(statement) != "tl.gemm":
        return False
    return dtype_of(regions(statement)[2].source) in ("int32", *SMALL_WHOLES)


def _branches(statement: tirx.Stmt, _: _Around) -> bool:
    return isinstance(statement, tirx.IfThenElse)


LOOPS_ARE_COUNTED = Predicate("each loop knows its number of iterations before it begins", _has_unknown_length)
NO_SCANS = Predicate("no scan and no reduction of bits is left", _scans)
NO_THREAD_GROUPS = Predicate("no statement is for some threads only", _is_for_threads)
NESTS_ARE_FLAT = Predicate("each T.Parallel holds stores and names alone, no branch and no loop", _nests)
DECIDERS_HAVE_NAMES = Predicate("each element of a tensor that decides something has a name", _reads_decider)
NESTS_USE_BLOCKS = Predicate("each T.Parallel reads and stores blocks on the chip alone", _uses_tensor)
BLOCKS_ARE_MATRICES = Predicate("each block has at most two dimensions", _is_no_matrix)
COPIES_KEEP_WIDE_DTYPES = Predicate("no copy converts to a dtype of 8 bits or fewer", _narrows)
NO_INTEGER_PRODUCTS = Predicate("no T.gemm accumulates in integers", _multiplies_integers)
BRANCHES_ARE_LOOPS = Predicate("no branch is left", _branches)

# What says nothing any more once operations work on tiles, and once there are three kernels.
OF_BLOCK_OPERATIONS = (NO_SCANS, NESTS_ARE_FLAT, NESTS_USE_BLOCKS, COPIES_KEEP_WIDE_DTYPES, NO_INTEGER_PRODUCTS)
OF_ONE_KERNEL = (LOOPS_ARE_COUNTED, NO_THREAD_GROUPS, DECIDERS_HAVE_NAMES, BRANCHES_ARE_LOOPS)
