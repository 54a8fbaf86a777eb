"""The interpreter finds faults of cores that hand blocks to one another, without the verifier, which would find them
first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.kernels import sent_by_writer, shared_factor
from tests.ir.interpreter.changed import Change, dropped, renamed, replaced, run_changed
from ttexplore.errors import VerifyError

PLANTED: list[tuple[str, Callable[[], Any], str, Change, str]] = [
    ("reader without barrier", shared_factor, "reader", dropped("noc_full_barrier"),
     "the reader ends before what it sent has arrived"),
    ("writer without barrier", sent_by_writer, "writer", dropped("noc_full_barrier"),
     "the writer ends before what it sent has arrived"),
    ("reader that waits for writes alone", shared_factor, "reader", renamed("noc_full_barrier", "noc_write_barrier"),
     "the reader ends before what it sent has arrived"),
    ("writer that waits for reads alone", sent_by_writer, "writer", renamed("noc_full_barrier", "noc_read_barrier"),
     "the writer ends before what it sent has arrived"),
    ("sent too early", shared_factor, "reader", dropped("noc_read_barrier"),
     "is sent before the reads into it have arrived"),
    ("sent where no room is", shared_factor, "reader", replaced("noc_multicast", 1, 2), "only 1 are reserved"),
    ("not sent", shared_factor, "reader", dropped("noc_multicast"), "has arrived, but none was sent"),
    ("no flag", shared_factor, "reader", dropped("semaphore_multicast"), "deadlock"),
    ("too many receivers", shared_factor, "reader", replaced("noc_multicast", 6, 5), "names 5 receivers, but"),
    ("too small a rectangle", sent_by_writer, "writer", replaced("noc_multicast_to_all", 2, 0),
     "names 1 receivers, but there are 0"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "kernel", "role", "change", "message"), PLANTED, ids=[one[0] for one in PLANTED])
def test_planted_fault(what: str, kernel: Callable[[], Any], role: str, change: Change, message: str) -> None:
    with pytest.raises(VerifyError, match=f"(?s){message}") as caught:
        run_changed(kernel(), role, change, (2, 1))
    assert caught.value.hint


@pytest.mark.parametrize(("kernel", "role"), [(shared_factor, "reader"), (sent_by_writer, "writer")])
def test_the_full_barrier_waits_for_reads_as_well(kernel: Callable[[], Any], role: str) -> None:
    run_changed(kernel(), role, renamed("noc_read_barrier", "noc_full_barrier"), (2, 1))
