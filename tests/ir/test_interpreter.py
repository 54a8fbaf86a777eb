"""The interpreter finds protocol faults as it runs: each is planted into a program that was right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import elementwise, gemm
from tests.corpus.rows import ROWS, total
from tests.rewriting import rewrite
from ttexplore.errors import VerifyError
from ttexplore.ir.build import arguments, op, op_name
from ttexplore.ir.interpreter import interpret, tilize, untilize
from ttexplore.ir.program import Program
from ttexplore.passes.tensor_roles import tensor_roles

Change = Callable[[Any], "list[Any] | None"]


def run_changed(kernel: Any, role: str, change: Change, **plan_changes: Any) -> None:
    exploration = ttx.explore(kernel, options={"cores": (1, 1)})
    program: Program = exploration.steps["E1"].after
    functions = {**program.functions, role: rewrite(program.functions[role], change)}
    plan = program.plan.replace(**plan_changes)
    interpret(functions, plan, exploration.inputs(), dict(tensor_roles(exploration.kernel.function)), turn_limit=10_000)


def dropped(name: str) -> Change:
    return lambda statement: [] if op_name(statement) == f"tt.{name}" else None


def renamed(old: str, new: str) -> Change:
    def change(statement: Any) -> list[Any] | None:
        return [op(new, *arguments(statement))] if op_name(statement) == f"tt.{old}" else None

    return change


def replaced(name: str, position: int, value: int) -> Change:
    def change(statement: Any) -> list[Any] | None:
        if op_name(statement) != f"tt.{name}":
            return None
        values = arguments(statement)
        values[position] = value
        return [op(name, *values)]

    return change


ADD = elementwise(lambda a, b: a + b, "float32")
BY_ROWS = T.annotate_tt_layout(total((33, 50), (32, 32), "float32"), {"A": ROWS})

PLANTED: list[tuple[str, Any, str, Change, str]] = [
    ("dropped push", ADD, "reader", dropped("cb_push_back"), "deadlock on core .*a push is missing"),
    ("dropped pop", ADD, "compute", dropped("cb_pop_front"), "still holds|deadlock"),
    ("dropped wait", ADD, "compute", dropped("cb_wait_front"), "tile 0 of a is read, 0 were waited for"),
    ("dropped reserve", ADD, "reader", dropped("cb_reserve_back"), "tile 0 of . is written, 0 are reserved"),
    ("dropped barrier", ADD, "reader", dropped("noc_read_barrier"), "pushed before the reads into it have arrived"),
    ("dropped flush", ADD, "writer", dropped("noc_writes_flushed"), "popped while it is still being written from"),
    ("dropped last barrier", ADD, "writer", dropped("noc_write_barrier"), "ends before its writes have arrived"),
    (
        "dropped acquire",
        ADD,
        "compute",
        dropped("tile_regs_acquire"),
        "is released, it should be acquired",
    ),
    ("dropped commit", ADD, "compute", dropped("tile_regs_commit"), "DST section is acquired, it should be committed"),
    ("dropped release", ADD, "compute", dropped("tile_regs_release"), "DST section is waited, it should be released"),
    ("missing init", ADD, "compute", dropped("copy_tile_init"), "copy_tile runs under the init of None"),
    ("missing SFPU init", ADD, "compute", dropped("add_binary_tile_init"), "add_binary_tile runs under the init"),
    ("wrong operation", gemm(), "compute", dropped("matmul_block_init"), "matmul_block runs under the init of None"),
    ("pushed too much", ADD, "reader", replaced("cb_push_back", 1, 8), "8 tiles of . are pushed, 4 are reserved"),
    ("waits too much", ADD, "compute", replaced("cb_wait_front", 1, 64), "64 tiles of . are waited for, which holds 8"),
    ("straddles", ADD, "reader", replaced("cb_reserve_back", 1, 3), "are pushed, 3 are reserved|is written, 3 are"),
    ("page outside", ADD, "reader", replaced("noc_read_tile", 1, 99), "page 99 of ., which has 8"),
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
    with pytest.raises(VerifyError, match=r"the packer is set to|unpacker .* is set to|is in force, which it is not"):
        run_changed(kernel, "compute", dropped("reconfig_pack"))


def test_turn_limit() -> None:
    exploration = ttx.explore(gemm(128, 128, 128, 64, 64, 32), options={"cores": (1, 1)})
    program: Program = exploration.steps["E1"].after
    with pytest.raises(VerifyError, match="did not end within 1 turns"):
        interpret(
            program.functions, program.plan, exploration.inputs(), dict(tensor_roles(exploration.kernel.function)),
            turn_limit=1,
        )  # fmt: skip


@pytest.mark.parametrize("shape", [(64, 96), (3, 64, 32), (2, 2, 32, 32), (128,), (33, 50), (2, 1, 31), (1,), (70,)])
def test_tilize_and_back(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tiles = tilize(values, np.nan)
    assert np.isnan(tiles).sum() == tiles.size - values.size
    np.testing.assert_array_equal(untilize(tiles, shape), values)


def test_fewer_pages_still_run() -> None:
    """Depth is speed, not meaning: with one stage each block waits for the one before."""
    exploration = ttx.explore(gemm(stages=1), options={"stages": 1})
    assert exploration.check()
    assert exploration.plan.buffer("a").stages == 1
