"""The operations of the IR: the calls, inits and uninits of the table, and the names of what they are given."""

from __future__ import annotations

import pytest

from ttexplore.ops import FORMS, OPS


def test_every_operation_has_a_name_of_its_own() -> None:
    forms = [form for op in OPS.values() for form in op.forms]
    assert len({form.name for form in forms}) == len(forms) == len(FORMS)
    assert {form.name for form in OPS["tt.tilize_block"].forms} == {
        "tt.tilize_block", "tt.tilize_block_init", "tt.tilize_block_uninit",
    }  # fmt: skip


def test_arguments_by_name() -> None:
    """A dst operand takes two arguments, the buffer and the slot in it; the init takes some, in an order of its own."""
    call, init = FORMS["tt.copy_tile"], FORMS["tt.copy_tile_init"]
    assert call.named(["cb", 3, "values", 5]) == {"source": "cb", "index": 3, "out": 5}
    assert [(one.operand.name, one.value, one.slot, one.position) for one in call.given(["cb", 3, "values", 5])] == [
        ("source", "cb", None, 0), ("index", 3, None, 1), ("out", "values", 5, 2),
    ]  # fmt: skip
    assert init.named(["cb"]) == {"source": "cb"}


def test_optional_arguments() -> None:
    form = FORMS["tt.write_block"]
    six = dict(zip(("cb", "target", "page", "rows", "columns", "row_stride"), range(6), strict=True))
    assert form.named(range(6)) == six
    assert form.named(range(10)) == six | {"row_low": 6, "row_end": 7, "column_low": 8, "column_end": 9}
    assert form.named(range(11))["condition"] == 10
    with pytest.raises(TypeError, match=r"tt.write_block takes 6 to 11 arguments, not 12"):
        form.named(range(12))


def test_too_few_arguments() -> None:
    with pytest.raises(TypeError, match=r"tt.copy_tile takes 4 arguments, not 3"):
        FORMS["tt.copy_tile"].given(["cb", 3, "values"])


def test_what_has_no_text_is_a_whole_block() -> None:
    assert all((not form.cpp) == (form.op.engine == "whole block") for form in FORMS.values())


def test_what_operations_do_for_the_kernel() -> None:
    """Set-up, waits and hand-overs are around that; what takes tiles to and from DST moves them."""
    work = {name: form.work for name, form in FORMS.items()}
    assert {
        work[f"tt.{name}"] for name in ("matmul_block", "add_tiles", "exp_tile", "fill_tile", "reduce_sum_row")
    } == {"computes"}
    assert {work[f"tt.{name}"] for name in ("copy_tile", "pack_tile", "noc_read_tile", "write_block", "tilize")} == {
        "moves"
    }
    around = {
        "init": ("matmul_block_init", "transpose_tile_init", "unary_bcast_row_uninit", "compute_startup", "set_pack"),
        "DST": ("tile_regs_acquire", "tile_regs_release"),
        "protocol": ("cb_wait_front", "noc_read_barrier", "noc_writes_flushed", "semaphore_up", "receive_sent"),
        "": ("receive_block", "check_read"),
    }
    for part, names in around.items():
        assert {work[f"tt.{name}"] for name in names} == {part}
