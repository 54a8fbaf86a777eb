"""Blocks that are numbered by groups are all blocks, each once; any other numbers of this kind are refused."""

from __future__ import annotations

import pytest

import ttexplore as ttx
from tests.porting.test_port import HEAD
from tests.porting.test_proof import recorded_launches

MATMUL = (
    HEAD
    + """
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr):
    pid = tl.program_id(axis=0)
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    together = GROUP * columns
    group = pid // together
    first = group * GROUP
    size = min(rows - first, GROUP)
    m = first + ((pid % together) % size)
    n = (pid % together) // size
    i = (m * BM + tl.arange(0, BM)) % M
    j = (n * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    pa = a + (i[:, None] * sam + k[None, :] * sak)
    pb = b + (k[:, None] * sbk + j[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(pb, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK * sak
        pb += BK * sbk
    i = m * BM + tl.arange(0, BM)
    j = n * BN + tl.arange(0, BN)
    tl.store(c + scm * i[:, None] + scn * j[None, :], acc.to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))
"""
)
SAME = {
    "as it stands": ("pid = tl", "pid = tl"), "rotated rows": ("(pid % together) % size)", "pid % size)"),
    "a smaller side first": ("min(rows - first, GROUP)", "min(GROUP, rows - first)"),
    "tl.minimum": ("min(rows", "tl.minimum(rows"), "columns first": ("GROUP * columns", "columns * GROUP"),
}  # fmt: skip
OTHER = {
    "no smaller group": ("min(rows - first, GROUP)", "GROUP"), "rows of a group": ("group * GROUP", "group"),
    "digits exchanged": ("(pid % together) // size", "pid // size"),
    "groups of rows": ("GROUP * columns", "GROUP * rows"),
    "one row more": ("rows - first, ", "rows - first + 1, "), "a larger group": ("first, GROUP", "first, 2 * GROUP"),
    "columns for rows": ("min(rows - first", "min(columns - first"), "the largest": ("min(rows", "max(rows"),
    "the next group": ("first + (", "first + GROUP + ("),
    "half of a group": ("pid // together", "pid // together // 2"),
    "rows taken twice": ("((pid % together) % size)", "((pid % together) // size)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_blocks_by_groups_are_all_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = recorded_launches(monkeypatch)
    before, after = SAME[name]
    assert before in MATMUL
    ported = ttx.port(MATMUL.replace(before, after))
    assert ported.proof is not None, ported.kernels[0]
    assert ported["matmul"].skeleton == ttx.port(MATMUL).skeleton
    # A group of all of its rows, and one of fewer.
    groups = [(-(-trial.sizes["rows"] // int(trial.numbers["BM"])), int(trial.numbers["GROUP"])) for trial in launches]
    assert any(rows > size > 1 and rows % size for rows, size in groups)


@pytest.mark.parametrize("name", OTHER)
def test_other_numbers_of_blocks_are_refused(name: str) -> None:
    before, after = OTHER[name]
    assert before in MATMUL
    (kernel,) = ttx.port(MATMUL.replace(before, after)).kernels
    assert not kernel.skeleton
    assert kernel.outside or (kernel.draft is not None and kernel.draft.difference is not None)
