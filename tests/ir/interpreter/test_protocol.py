"""The interpreter finds protocol faults as it runs: each is planted into a program that was right."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore.language as T
from tests.corpus import elementwise, gemm
from tests.corpus.rows import ROWS, total
from tests.ir.interpreter.changed import Change, dropped, replaced, run_changed
from ttexplore.errors import VerifyError

ADD = elementwise(lambda a, b: a + b, "float32")
BY_ROWS = T.annotate_tt_layout(total((33, 50), (32, 32), "float32"), {"A": ROWS})

PLANTED: list[tuple[str, Any, str, Change, str]] = [
    ("dropped push", ADD, "reader", dropped("cb_push_back"), "deadlock on core .*a push is missing"),
    ("dropped pop", ADD, "compute", dropped("cb_pop_front"), "still holds|deadlock"),
    ("dropped wait", ADD, "compute", dropped("cb_wait_front"), "tile 0 of a is read, but only 0 were waited for"),
    ("dropped reserve", ADD, "reader", dropped("cb_reserve_back"), "tile 0 of . is written, but only 0 are reserved"),
    ("dropped barrier", ADD, "reader", dropped("noc_read_barrier"), "pushed before the reads into it have arrived"),
    ("dropped flush", ADD, "writer", dropped("noc_writes_flushed"), "popped while it is still being written from"),
    ("dropped last barrier", ADD, "writer", dropped("noc_write_barrier"), "ends before its writes have arrived"),
    (
        "dropped acquire",
        ADD,
        "compute",
        dropped("tile_regs_acquire"),
        "is released, but it should be acquired",
    ),
    (
        "dropped commit",
        ADD,
        "compute",
        dropped("tile_regs_commit"),
        "DST section is acquired, but it should be committed",
    ),
    (
        "dropped release",
        ADD,
        "compute",
        dropped("tile_regs_release"),
        "DST section is waited, but it should be released",
    ),
    ("missing init", ADD, "compute", dropped("copy_tile_init"), "copy_tile runs under the init of None"),
    ("missing SFPU init", ADD, "compute", dropped("add_binary_tile_init"), "add_binary_tile runs under the init"),
    ("wrong operation", gemm(), "compute", dropped("matmul_block_init"), "matmul_block runs under the init of None"),
    (
        "pushed too much",
        ADD,
        "reader",
        replaced("cb_push_back", 1, 8),
        "8 tiles of . are pushed, but only 4 are reserved",
    ),
    (
        "waits too much",
        ADD,
        "compute",
        replaced("cb_wait_front", 1, 64),
        "64 tiles of . are waited for, but it holds only 8",
    ),
    (
        "straddles",
        ADD,
        "reader",
        replaced("cb_reserve_back", 1, 3),
        "are pushed, but only 3 are reserved|is written, but only 3 are",
    ),
    ("page outside", ADD, "reader", replaced("noc_read_tile", 1, 99), "page 99 of . is accessed, which has 8 pages"),
    (
        "beyond a row",
        BY_ROWS,
        "reader",
        replaced("noc_read_part", 2, 196),
        "elements 49 to 65 of a row of A",
    ),
    ("slot of DST", ADD, "compute", replaced("copy_tile", 3, 7), "copy_tile uses slot 7 of DST, which has 4"),
]


@pytest.mark.parametrize(("what", "kernel", "role", "change", "message"), PLANTED, ids=[one[0] for one in PLANTED])
def test_planted_fault(what: str, kernel: Any, role: str, change: Change, message: str) -> None:
    with pytest.raises(VerifyError, match=f"(?s){message}") as caught:
        run_changed(kernel, role, change)
    assert caught.value.hint
    assert caught.value.span is not None or "still holds" in caught.value.message


def test_unplanted_program_runs() -> None:
    run_changed(ADD, "reader", lambda statement: None)


def test_deadlock_names_kernels_buffer_and_way_out() -> None:
    with pytest.raises(VerifyError) as caught:
        run_changed(ADD, "reader", dropped("cb_push_back"))
    text = caught.value.message
    assert "the compute waits to receive 4 tiles of a, has 0 of 8" in text
    assert (
        "the writer waits to receive 4 tiles of c_out" in text or "the writer waits to receive 4 tiles of c, " in text
    )
    assert "push is missing" in caught.value.hint


def test_missing_reconfiguration() -> None:
    kernel = gemm(128, 128, 128, 128, 128, 32)
    with pytest.raises(
        VerifyError, match=r"the packer is set to|unpacker .* is set to|as the current buffer, but it is not"
    ):
        run_changed(kernel, "compute", dropped("reconfig_pack"))
