"""The kernels that every law is checked on: one for each construct that is lowered, and some together.

A new construct gets a case in the module of its subject; a new subject gets a module and a line in `CORPUS`.
"""

from __future__ import annotations

from tests.corpus.bits import BITS
from tests.corpus.block_floats import BLOCK_FLOATS
from tests.corpus.branches import BRANCHES
from tests.corpus.case import Case
from tests.corpus.deciding_variables import DECIDING_VARIABLES
from tests.corpus.direct import DIRECT
from tests.corpus.dtypes import DTYPES
from tests.corpus.expressions import EXPRESSIONS
from tests.corpus.formats import FORMATS
from tests.corpus.gathers import GATHERS
from tests.corpus.gemms import GEMMS
from tests.corpus.index_tensors import INDEX_TENSORS
from tests.corpus.lanes import LANES
from tests.corpus.launches import LAUNCHES
from tests.corpus.limited import LIMITED
from tests.corpus.names import NAMES
from tests.corpus.parts import PARTS
from tests.corpus.quantifiers import QUANTIFIERS
from tests.corpus.rearranged import REARRANGED
from tests.corpus.reducers import REDUCERS
from tests.corpus.reductions import REDUCTIONS
from tests.corpus.reshaped import RESHAPED
from tests.corpus.rows import ROW_MAJOR
from tests.corpus.scalars import SCALARS
from tests.corpus.scans import SCANS
from tests.corpus.schedulers import SCHEDULERS
from tests.corpus.schedules import SCHEDULES
from tests.corpus.shapes import SHAPES
from tests.corpus.sizes import SIZES
from tests.corpus.spine import SPINE, copy_block, elementwise, gemm, row_bias, two_outputs
from tests.corpus.sums import SUMS
from tests.corpus.turns import TURNS
from tests.corpus.warps import WARPS
from tests.corpus.whiles import WHILES

CORPUS: tuple[Case, ...] = (
    *SPINE, *SCHEDULES, *EXPRESSIONS, *SHAPES, *SIZES, *GEMMS, *DTYPES, *FORMATS, *BITS, *ROW_MAJOR, *BLOCK_FLOATS,
    *TURNS, *BRANCHES, *INDEX_TENSORS, *REDUCTIONS, *DIRECT, *PARTS, *REARRANGED, *GATHERS, *SCALARS, *SUMS, *NAMES,
    *LIMITED, *DECIDING_VARIABLES, *WARPS,
    *SCANS,
    *LAUNCHES,
    *REDUCERS,
    *SCHEDULERS,
    *QUANTIFIERS,
    *RESHAPED,
    *LANES,
    *WHILES,
)  # fmt: skip

__all__ = ["CORPUS", "Case", "copy_block", "elementwise", "gemm", "row_bias", "two_outputs"]
