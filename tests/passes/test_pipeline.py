"""Lowerings that are like others: passes that would give the same again do not run, and nobody can tell."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.conftest import compare_golden
from tests.corpus import gemm
from tests.corpus.formats import FORMATS
from tests.corpus.gemms import GEMMS
from tests.corpus.spine import SPINE
from tests.steps import LETTERS, before
from ttexplore.errors import VerifyError
from ttexplore.exploration import Exploration, Step
from ttexplore.ir.program import TirProgram
from ttexplore.passes.pipeline import PIPELINE, lower
from ttexplore.passes.step import Pass
from ttexplore.passes.verify import Verifier
from ttexplore.record import to_json
from ttexplore.target import Target

_GOLDEN = Path(__file__).parents[1] / "golden" / "pipeline.txt"
# An option of each pass that has any, and of A1 one that is an error; what other passes look at, too.
OPTIONS: tuple[dict[str, Any], ...] = (
    {"policy": "strided"}, {"order": "block_linear(2)"}, {"math_fidelity": "LoFi"}, {"stages": 3}, {"eltwise": "sfpu"},
    {"epilogue": "separate"}, {"subblock": (1, 1)}, {"subblock": (1, 1), "policy": "strided"}, {"cores": (1, 1)},
    {"mode": "local_shard"}, {"multicast": "auto"}, {"layouts": {"A": {"shard": "height"}}}, {},
)  # fmt: skip


def test_the_steps_and_their_parts(request: pytest.FixtureRequest) -> None:
    rows = [
        (f"{'  ' * (step is not whole)}{step.letter}", step.stage, step.name)
        for whole in PIPELINE for step in (whole, *whole.parts)
    ]  # fmt: skip
    compare_golden(
        _GOLDEN, "".join(f"{' '.join(row)}\n" for row in rows), update=bool(request.config.getoption("--update-golden"))
    )


def described(exploration: Exploration) -> list[object]:
    return [
        (
            step.name, step.options, step.listing, to_json(step.applied.before.plan), to_json(step.plan),
            step.record.firings, step.error and step.error.record(),
        )
        for step in steps_of(exploration)
    ]  # fmt: skip


def steps_of(exploration: Exploration) -> tuple[Step, ...]:
    return exploration._lowered.steps


def shared(one: Exploration, other: Exploration) -> list[str]:
    """The letters of the passes that one lowering took from another."""
    pairs = zip(steps_of(one), steps_of(other), strict=False)
    return [a.letter for a, b in pairs if a.after.functions is b.after.functions]


# C2 tells products of float8 by their math fidelity, and refuses some of int8.
_PRODUCTS = [one for one in FORMATS if one.name in ("float8_product", "int8_product")]


@pytest.mark.parametrize("case", [*SPINE[:4], *GEMMS[:3], *_PRODUCTS], ids=lambda one: one.name)
def test_a_lowering_like_others_is_that_of_its_own(case: Any) -> None:
    first = ttx.explore(case.make(), options=case.options)
    found: list[Exploration] = [first]
    for options in OPTIONS:
        asked = {**case.options, **options}
        alone = ttx.explore(first.kernel, options=asked)
        found.append(first.with_options(asked, found))
        assert described(found[-1]) == described(alone), options
        assert found[-1].options == alone.options


def test_passes_that_look_at_no_other_option_do_not_run_again() -> None:
    first = ttx.explore(gemm(128, 128, 128, 64, 64, 32))
    assert shared(first.fork(), first) == LETTERS
    assert shared(first.fork(subblock=(1, 1)), first) == before("D5")
    # B1 predicts times with the math fidelity, and comes to the same; the others hand it on.
    low = first.fork(math_fidelity="LoFi")
    assert shared(low, first) == LETTERS
    assert [low.plan.compute, low.plan.options] != [first.plan.compute, first.plan.options]
    # A0.1 notes the policy and A2.5 the engine, and both leave the functions as they are.
    assert shared(first.fork(policy="strided"), first) == before("B2")
    assert shared(first.fork(eltwise="sfpu"), first) == before("B2")
    assert shared(first.fork(target="blackhole_p150"), first) == []
    # Of several, each as far as it goes.
    staged = first.fork(stages=3)
    both = first.with_options({"stages": 3, "subblock": (1, 1)}, [staged])
    assert (shared(both, staged), shared(both, first)) == (before("D5"), before("B2"))


def test_a_program_that_was_verified_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ttx.explore(gemm(128, 128, 128, 64, 64, 32))
    verified: list[Any] = []
    check = Verifier.check

    def counted(self: Verifier, program: Any) -> None:
        verified.append(program.functions)
        check(self, program)

    monkeypatch.setattr(Verifier, "check", counted)
    first.fork()
    first.fork(math_fidelity="LoFi")
    assert verified == []
    made = first.fork(subblock=(1, 1))
    leaves = [leaf for step in steps_of(made)[LETTERS.index("D5") :] for leaf in step.leaves]
    assert verified == [leaf.after.functions for leaf in leaves]
    del verified[:]
    # The sizes of its cores are other ones, so whatever follows is another program, where anything is new.
    made = first.fork(policy="strided")
    leaves = [leaf for step in steps_of(made)[LETTERS.index("B1") :] for leaf in step.leaves]
    idle = [leaf.letter for leaf in leaves if leaf.after is leaf.before]
    assert "B1.3" in idle
    assert len(verified) == len(leaves) - len(idle)


def test_a_fault_behind_steps_that_are_shared_is_found() -> None:
    first = ttx.explore(gemm(128, 128, 128, 64, 64, 32))
    *steps, last, _ = (step.applied.step for step in steps_of(first))

    def faulty(program: TirProgram, target: Target, *, epilogue: Any, subblock: Any) -> TirProgram:
        made = last.function(program, target, epilogue=epilogue, subblock=subblock)
        assert made.plan.compute is not None
        tiles = made.plan.compute.dst_tiles + (subblock is not None)
        return made.with_plan(compute=dataclasses.replace(made.plan.compute, dst_tiles=tiles))

    program, steps = steps_of(first)[0].before, [*steps, Pass("D5", "kernels", faulty)]
    sound = list(lower(program, first.target, {}, steps))
    assert sound[-1].error is None
    found = list(lower(program, first.target, {"subblock": (1, 1)}, steps, [sound]))
    assert len(found) == len(sound)
    assert all(one.after.functions is other.after.functions for one, other in zip(found[:-1], sound, strict=False))
    assert isinstance(found[-1].error, VerifyError)
    assert "the plan says that DST holds" in found[-1].error.message
