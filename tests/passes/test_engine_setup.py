"""What sets the engine up follows from the operations: from nothing else, in every arm, however often it is asked."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import CORPUS, Case
from tests.faults.kernels import difference
from tests.faults.plant import edited
from ttexplore.analysis.engine_setup import set_up
from ttexplore.errors import VerifyError
from ttexplore.ir.build import arguments, op, op_name, variable, when
from ttexplore.ir.kernel import FunctionReader
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings, walk
from ttexplore.passes.insert_dst_management.sections import replaced
from ttexplore.passes.verify.engine import check_engine

LOOPS_AND_FORMATS = ("gemm_reload", "gemm_fp32_by_bf16_transposed", "gemm_nested_loops_spilled", "attention_like")
SOME = [case for case in CORPUS if case.name in LOOPS_AND_FORMATS]


def names(function: Any) -> list[str]:
    return [op_name(one) for one in walk(function.body)]


def checked(program: TirProgram) -> None:
    check_engine(FunctionReader().read("compute", program.functions["compute"]), program.plan)


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_it_follows_from_the_operations_alone(case: Case) -> None:
    """Set up again, a kernel stays as it is; and what D5 asks for is what D4 has asked for before."""
    ex = ttx.explore(case.make(), options=case.options)
    for step in ("D4", "D5"):
        after = ex.steps[step].after
        compute = after.functions["compute"]
        assert str(set_up(compute, after.plan, Firings())) == str(compute)
    bare, ready = ex.steps["D3"].after, ex.steps["D4"].after
    assert str(set_up(bare.functions["compute"], bare.plan, Firings())) == str(ready.functions["compute"])


def either(statement: Any) -> list[Any]:
    """The difference where something holds, else the sum."""
    total = op("add_tiles", *arguments(statement), span=statement.span)
    return [when(variable("somewhere") > 0, [statement], statement.span, otherwise=[total])]


def test_both_arms_of_a_condition_are_set_up() -> None:
    ex = ttx.explore(difference())
    faulty = edited("compute", "sub_tiles", either)(ex.steps["D5"].after)
    with pytest.raises(VerifyError, match="add_tiles runs under the init of sub_tiles"):
        checked(faulty)
    compute = set_up(faulty.functions["compute"], faulty.plan, Firings())
    assert names(compute).count("tt.add_tiles") == 1
    assert names(compute).count("tt.add_tiles_init") == 1
    checked(faulty.with_functions({**faulty.functions, "compute": compute}, Firings()))


def test_the_last_turn_of_a_loop_keeps_both_arms() -> None:
    turn = variable("turn")
    both = when(turn > 0, [op("tile_regs_acquire")], otherwise=[op("tile_regs_release")])
    last = replaced(both, {turn: 3})
    assert [op_name(one) for one in walk(last)] == ["", "tt.tile_regs_acquire", "tt.tile_regs_release"]
