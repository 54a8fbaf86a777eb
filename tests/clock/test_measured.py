"""What the clock predicts for measured figures other than times of matmuls; docs/clock.md has the table."""

from __future__ import annotations

import statistics

import pytest

from tests.clock.measured import Row, error, rows, summaries
from ttexplore.ops import OPS
from ttexplore.ops.sfpu_cycles import COUNTED, MEASURED, counted_cycles, sfpu_cycles

# Of kinds that are modelled: the median and the largest error, rounded up.
HELD = {
    "dram": (0.04, 0.22), "multicast": (0.12, 0.22), "noc": (0.12, 0.96), "eltwise": (0.14, 0.30), "sfpu": (0.01, 0.37),
    "noc_trace": (0.06, 0.26), "sdpa": (0.10, 0.25), "norm": (0.09, 0.22), "reduce": (0.03, 0.20),
}  # fmt: skip


def test_errors_by_kind() -> None:
    of_all = {summary.kind: summary for summary in summaries(rows())}
    found = {kind: (of_all[kind].median, of_all[kind].worst) for kind in HELD}
    beyond = {
        kind: errors for kind, errors in found.items() if any(a > b for a, b in zip(errors, HELD[kind], strict=True))
    }
    assert beyond == {}


def test_counted_cycles_are_close_to_measured_ones() -> None:
    errors = [abs(counted_cycles(*what) / cycles - 1) for what, (cycles, _) in MEASURED.items()]
    assert statistics.median(errors) <= 0.04
    assert max(errors) <= 0.145


def test_each_operation_of_the_vector_unit_is_counted() -> None:
    assert {*COUNTED} == {op.name for op in OPS.values() if op.engine == "sfpu"}
    assert {name for name, _, _ in MEASURED} <= {*COUNTED}
    assert sfpu_cycles("gelu_tile", "blackhole", 16) == 2847
    assert sfpu_cycles("gelu_tile", "blackhole", 32) == COUNTED["gelu_tile"][3]
    assert sfpu_cycles("gelu_tile", "wormhole_b0", 16) == COUNTED["gelu_tile"][0]


def order(small: Row, large: Row) -> bool:
    """Whether the clock orders two figures of the same unit as they were measured."""
    errors = error(small), error(large)
    assert None not in errors
    predicted = [row.value * (1 + one) for row, one in zip((small, large), errors, strict=True) if one is not None]
    return (predicted[0] < predicted[1]) == (small.value < large.value)


@pytest.mark.parametrize(
    "what",
    ["AdamW", "InterleavedToSharded", "share of channel peak", "ttnn main", "sdpa_decode", "MLA", "topk"],
)
def test_order_of_pairs(what: str) -> None:
    """Formats and sizes."""
    those = [row for row in rows() if what in row.what]
    assert len(those) > 1
    assert all(order(a, b) for at, a in enumerate(those) for b in those[:at])
