"""Lowerings that are like others: passes that would give the same again do not run, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.corpus.gemms import GEMMS
from tests.corpus.spine import SPINE
from ttexplore.exploration import Exploration, Step
from ttexplore.passes.verify import Verifier
from ttexplore.record import to_json

# An option of each pass that has any, and of A1 one that is an error; what other passes look at, too.
OPTIONS: tuple[dict[str, Any], ...] = (
    {"policy": "strided"}, {"order": "block_linear(2)"}, {"math_fidelity": "LoFi"}, {"stages": 3}, {"eltwise": "sfpu"},
    {"epilogue": "separate"}, {"subblock": (1, 1)}, {"subblock": (1, 1), "policy": "strided"}, {"cores": (1, 1)},
    {"mode": "local_shard"}, {"multicast": "auto"}, {"layouts": {"A": {"shard": "height"}}}, {},
)  # fmt: skip


def described(exploration: Exploration) -> list[object]:
    return [
        (
            step.name, step.options, step.listing, to_json(step.applied.before.plan), to_json(step.plan),
            step.record.firings, step.error and step.error.record(),
        )
        for step in steps_of(exploration)
    ]  # fmt: skip


def steps_of(exploration: Exploration) -> tuple[Step, ...]:
    return exploration._steps


def shared(one: Exploration, other: Exploration) -> str:
    """The letters of the passes that one lowering took from another."""
    pairs = zip(steps_of(one), steps_of(other), strict=False)
    return " ".join(a.letter for a, b in pairs if a.after.functions is b.after.functions)


@pytest.mark.parametrize("case", [*SPINE[:4], *GEMMS[:3]], ids=lambda one: one.name)
def test_a_lowering_like_others_is_that_of_its_own(case: Any) -> None:
    first = ttx.explore(case.make(), options=case.options)
    found: list[Exploration] = [first]
    for options in OPTIONS:
        asked = {**case.options, **options}
        alone = ttx.explore(first.kernel, options=asked)
        found.append(first.with_options(asked, found))
        assert described(found[-1]) == described(alone), options
        assert found[-1].options == alone.options


def test_passes_before_the_first_that_looks_at_an_option_do_not_run_again() -> None:
    first = ttx.explore(gemm(128, 128, 128, 64, 64, 32))
    assert shared(first.fork(), first) == "A0 A1 A2 A3 B1 B2 C1 C2 C3 D1 D2 D3 D4 D5 E1"
    assert shared(first.fork(subblock=(1, 1)), first) == "A0 A1 A2 A3 B1 B2 C1 C2 C3 D1 D2 D3 D4"
    assert shared(first.fork(math_fidelity="LoFi"), first) == "A0 A1"
    # A0 notes the policy, and A2 looks at the engine, an option of C2.
    assert shared(first.fork(policy="strided"), first) == ""
    assert shared(first.fork(eltwise="sfpu"), first) == "A0 A1"
    assert shared(first.fork(target="blackhole_p150"), first) == ""
    # Of several, each as far as it goes.
    low = first.fork(math_fidelity="LoFi")
    both = first.with_options({"math_fidelity": "LoFi", "subblock": (1, 1)}, [low])
    assert (shared(both, low), shared(both, first)) == ("A0 A1 A2 A3 B1 B2 C1 C2 C3 D1 D2 D3 D4", "A0 A1")


def test_what_is_shared_is_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ttx.explore(gemm(128, 128, 128, 64, 64, 32))
    verified: list[object] = []
    check = Verifier.check

    def counted(self: Verifier, program: Any) -> None:
        verified.append(program)
        check(self, program)

    monkeypatch.setattr(Verifier, "check", counted)
    again = first.fork()
    assert verified == [step.after for step in steps_of(again)]
    assert len(verified) == len(steps_of(first))
