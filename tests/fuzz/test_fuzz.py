"""Random kernels, always the same ones; ``make fuzz`` runs as many others as wanted."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.fuzz.campaign import Check, search, signature
from tests.fuzz.description import (
    Allocate,
    Bind,
    Branch,
    Call,
    Constant,
    Copy,
    Fill,
    Kernel,
    Load,
    Loop,
    Named,
    Parallel,
    Position,
    Reduce,
    Region,
    Scalar,
    Schedule,
    Store,
    Tensor,
    renamed,
    statements,
)
from tests.fuzz.draw import OPTIONS, case
from tests.fuzz.laws import Checks, LawBroken, check
from tests.fuzz.meaning import REFERENCE, device_precision, expected, random_inputs
from tests.fuzz.reduce import reduced
from tests.fuzz.source import regression_text, source_text
from tests.fuzz.traits import traits
from ttexplore.backends.emulator import Emulator
from ttexplore.options import DEFAULTS

KERNELS_A_SEED = 35


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2, 3))])
def test_random_kernels_obey_every_law(seed: int) -> None:
    turn = itertools.count()
    emulator = Emulator(event_limit=0)

    def sampled(kernel: Kernel, schedule: Schedule) -> str:
        number = next(turn)
        return check(kernel, schedule, Checks(emulator if number % 5 == 0 else None, number % 10 == 0))

    def full(law: str) -> Check:
        return lambda kernel, schedule: check(kernel, schedule, Checks(emulator, True).finding(law))

    tally = search(KERNELS_A_SEED, sampled, full, start=seed)
    told = [failure.text(number) for number, failure in enumerate(tally.failures.values(), 1)]
    assert not told, "\n\n".join(told)
    refused = tally.outcomes.total() - tally.outcomes[""]
    assert refused <= 0.15 * tally.kernels, tally.outcomes


def test_every_option_is_drawn() -> None:
    """A new option of a pass needs a line in OPTIONS."""
    assert set(OPTIONS) == set(DEFAULTS.by_name)


def simple() -> Kernel:
    block = Region("s", ("0", "0"), (32, 32), "whole")
    twice = Parallel(("i", "j"), (32, 32), (Store("s", Call("multiply", (Load("s", ("i", "j")),) * 2)),))
    return Kernel(
        (1, 2),
        (Tensor("A", (2, 64, 32), "float32"), Tensor("C", (64, 32), "bfloat16")),
        (
            Allocate("s", (32, 32), "float32", "shared"),
            Loop("k", 2, None, (Copy(Region("A", ("k", "by * 32", "0"), (1, 32, 32)), block), twice)),
            Copy(block, Region("C", ("by * 32", "bx * 32"), (32, 32), "slice")),
        ),
    )


def test_the_source_is_what_a_user_writes() -> None:
    assert source_text(simple()) == (
        "import ttexplore.language as T\n\n\n@T.prim_func\ndef kernel(\n"
        '    A: T.Tensor((2, 64, 32), "float32"),\n    C: T.Tensor((64, 32), "bfloat16"),\n):\n'
        "    with T.Kernel(1, 2) as (bx, by):\n"
        '        s = T.alloc_shared((32, 32), "float32")\n'
        "        for k in T.serial(2):\n"
        "            T.copy(A[k, by * 32, 0], s)\n"
        "            for i, j in T.Parallel(32, 32):\n"
        "                s[i, j] = (s[i, j] * s[i, j])\n"
        "        T.copy(s, C[by * 32 : by * 32 + 32, bx * 32 : bx * 32 + 32])\n"
    )
    assert "def test_name(tmp_path: Path) -> None:" in regression_text(simple(), Schedule(), "name")


def test_the_meaning_is_numpys() -> None:
    """What the description means, with bounds that hold the exact result and not much else."""
    (a,) = random_inputs(simple(), 0)
    (exact,) = expected(simple(), [a], REFERENCE)
    squares = a[1].astype(np.float64) ** 2
    np.testing.assert_allclose(exact.value, squares, rtol=2**-8)
    (device,) = expected(simple(), [a], device_precision(wide=True, fidelity="HiFi4"))
    assert device.contains(squares).all()
    assert not device.contains(squares * 1.05)[np.abs(squares) > 0.1].any()
    assert not device.contains(np.full((64, 32), np.nan)).any()


def test_numbers_of_two_dtypes_meet_in_one_of_them() -> None:
    """The language turns bfloat16 to float16 beside float16, so what was computed is rounded."""
    whole = ("0", "0")
    a, h = (Load(name, ("i", "j")) for name in ("a", "h"))
    for value in (Call("multiply", (Call("log", (a,)), h)), Call("subtract", (Named("x"), h))):
        kernel = Kernel(
            (1,),
            (Tensor("A", (8, 32), "bfloat16", "positive"), Tensor("C", (8, 32), "bfloat16")),
            (
                Allocate("a", (8, 32), "bfloat16", "shared"),
                Allocate("h", (8, 32), "float16", "shared"),
                Copy(Region("A", whole, (8, 32), "whole"), Region("a", whole, (8, 32), "whole")),
                Copy(Region("a", whole, (8, 32), "whole"), Region("h", whole, (8, 32), "whole")),
                Parallel(("i", "j"), (8, 32), (Bind("x", Call("log", (a,))), Store("a", value))),
                Copy(Region("a", whole, (8, 32), "whole"), Region("C", whole, (8, 32), "whole")),
            ),
        )
        assert check(kernel, Schedule(), Checks()) == ""


def test_a_number_that_python_computes_has_the_dtype_beside_it() -> None:
    """A function of T gives of numbers a float of Python's, which is rounded beside bfloat16 as a written one is."""
    whole = (("0", "0"), (8, 32), "whole")
    sigmoid = Call("sigmoid", (Constant(1.0),))
    made = Parallel(("i", "j"), (8, 32), (Store("c", Call("max", (Load("a", ("i", "j")), sigmoid))),))
    kernel = Kernel(
        (1,),
        (Tensor("A", (8, 32), "bfloat16"), Tensor("C", (8, 32), "float32")),
        (
            Allocate("a", (8, 32), "bfloat16", "shared"),
            Allocate("c", (8, 32), "float32", "shared"),
            Copy(Region("A", *whole), Region("a", *whole)),
            made,
            Copy(Region("c", *whole), Region("C", *whole)),
        ),
    )
    (exact,) = expected(kernel, [np.zeros((8, 32), np.float32)], REFERENCE)
    assert exact.value[0, 0] == 0.73046875
    assert check(kernel, Schedule(), Checks()) == ""


def hostile() -> Kernel:
    """Hostile names, a tensor that nothing uses, a loop that begins before 0, a read and a store behind the end."""
    block = Region("register", ("0", "0"), (32, 32), "whole")
    load = Copy(Region("int", ("T.max(k, 0) * 32", "0"), (32, 32)), block)
    sums = Call("add", (Load("register_out", ("i", "j")), Load("register", ("i", "j"))))
    return Kernel(
        (3,),
        (
            Tensor("int", (40, 32), "float32"),
            Tensor("U", (2, 3, 40), "uint8", "bytes"),
            Tensor("C", (64, 32), "float32"),
        ),
        (
            Allocate("register", (32, 32), "float32", "shared"),
            Allocate("register_out", (32, 32), "float32", "fragment"),
            Fill("register_out", 1.0),
            Loop("k", 3, None, (load, Parallel(("i", "j"), (32, 32), (Store("register_out", sums),))), first="bx - 1"),
            Copy(Region("register_out", ("0", "0"), (32, 32), "whole"), Region("C", ("bx * 32", "0"), (32, 32))),
        ),
        name="void",
    )


def test_bounds_before_0_and_blocks_behind_the_end() -> None:
    kernel = hostile()
    assert '    U: T.Tensor((2, 3, 40), "uint8"),\n' in source_text(kernel)
    assert "        for k in T.serial(bx - 1, 3):\n" in source_text(kernel)
    assert traits(kernel, Schedule()) == {
        "element-wise", "loop", "loop from a bound of a block's own", "loop from a negative bound", "signed index",
        "unused tensor", "hostile names", "tensor of no whole tiles", "tensor of rank 3 and more", "uint8", "tail",
        "read wholly behind the end", "store wholly behind the end",
    }  # fmt: skip
    arrays = random_inputs(kernel, 0)
    (exact,) = expected(kernel, arrays, REFERENCE)
    pages = [np.pad(arrays[0], ((0, 56), (0, 0)))[start : start + 32] for start in (0, 32, 64)]
    first, second = (1 + pages[0] * before + pages[0] + pages[1] + pages[2] for before in (1, 0))
    np.testing.assert_allclose(exact.value, np.concatenate([first, second]), atol=1e-5)
    assert check(kernel, Schedule(), Checks(Emulator(event_limit=0))) == ""


def test_elements_of_tensors_and_branches() -> None:
    """A T.Parallel that reads a tensor past its end and stores to another one, under a causal test, in two branches."""
    block = Region("s", ("0", "0"), (32, 32), "whole")
    load = Copy(Region("A", ("bx * 32", "0"), (32, 32)), block)
    causal = Call("greater_equal", (Position("bx * 32 + i"), Position("j + 20")))
    ahead = Load("A", ("bx * 32 + i + 5", "j"))
    kept = Parallel(("i", "j"), (32, 32), (Store("s", ahead, (), causal),))
    twice = Parallel(("i", "j"), (32, 32), (Store("s", Call("add", (Load("s", ("i", "j")), ahead))),))
    store = Store("C", Load("s", ("i", "j")), ("bx * 32 + i", "j"), causal, Constant(0.5))
    kernel = Kernel(
        (3,),
        (Tensor("A", (90, 32), "float32"), Tensor("C", (90, 32), "float32")),
        (
            Allocate("s", (32, 32), "float32", "shared"),
            load,
            Branch("bx % 2 == 0", (kept,), (twice,)),
            Parallel(("i", "j"), (32, 32), (store,)),
        ),
    )
    assert (
        "        if bx % 2 == 0:\n"
        "            for i, j in T.Parallel(32, 32):\n"
        "                if ((bx * 32 + i) >= (j + 20)):\n"
        "                    s[i, j] = A[bx * 32 + i + 5, j]\n"
        "        else:\n"
    ) in source_text(kernel)
    assert traits(kernel, Schedule()) >= {
        "if in T.Parallel", "if and else in T.Parallel", "if and else around blocks",
        "read of T.Parallel from a tensor", "store of T.Parallel to a tensor", "condition on the place in a tensor",
    }  # fmt: skip
    (a,) = random_inputs(kernel, 0)
    (exact,) = expected(kernel, [a], REFERENCE)
    padded = np.pad(a, ((0, 6), (0, 0)))
    later = np.pad(a, ((0, 11), (0, 0)))[5:]
    rows, columns = np.indices(padded.shape)
    under = rows >= columns + 20
    made = np.where(rows // 32 % 2 == 0, np.where(under, later, padded), padded + later)
    np.testing.assert_allclose(exact.value, np.where(under, made, 0.5)[:90], atol=1e-5)
    assert check(kernel, Schedule(), Checks(Emulator(event_limit=0))) == ""
    # A causal test for all but one element is told from one for all.
    off = replace(store, test=Call("greater", causal.arguments))
    wrong = replace(kernel, body=(*kernel.body[:-1], Parallel(("i", "j"), (32, 32), (off,))))
    (other,) = expected(wrong, [a], REFERENCE)
    assert not other.contains(exact.value).all()


@pytest.mark.parametrize("part", [("i", 20), ("j", 16), ("i", 0)])
def test_a_tensor_that_is_stored_in_part_keeps_the_rest(part: tuple[str, int]) -> None:
    axis, end = part
    at, test = ("bx * 32 + i", "j"), Call("less", (Position(axis), Constant(end)))
    store = Store("C", Call("add", (Load("A", at), Constant(100.0))), at, test)
    tensors = (Tensor("A", (64, 32), "float32"), Tensor("C", (64, 32), "float32"))
    kernel = Kernel((2,), tensors, (Parallel(("i", "j"), (32, 32), (store,)),))
    a, c = random_inputs(kernel, 0, {"C"})
    (bound,) = expected(kernel, [a, c], REFERENCE, updated={"C"})
    stored = np.indices(a.shape)[("i", "j").index(axis)] % 32 < end
    np.testing.assert_allclose(bound.value, np.where(stored, a + 100.0, c), atol=1e-4)
    assert check(kernel, Schedule(), Checks(Emulator(event_limit=0))) == ""


def test_a_tensor_that_loses_the_rest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.laws._updated", lambda *_: frozenset[str]())
    store = Store("C", Load("A", ("i", "j")), ("i", "j"), Call("less", (Position("i"), Constant(20))))
    tensors = (Tensor("A", (32, 32), "float32"), Tensor("C", (32, 32), "float32"))
    with pytest.raises(LawBroken, match="a tensor that is stored in part is an input: C"):
        check(Kernel((1,), tensors, (Parallel(("i", "j"), (32, 32), (store,)),)), Schedule(), Checks())


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_reductions_of_bits_mean_what_numpy_says(kind: Literal["bitand", "bitor", "bitxor"]) -> None:
    numbers = random.Random(0)
    join = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[kind]
    kernel = next(
        one
        for one, _ in (case(numbers) for _ in range(5000))
        if kind in {statement.kind for statement in statements(one.body) if isinstance(statement, Reduce)}
    )
    assert f"T.reduce_{kind}(" in source_text(kernel)
    block = Region("s", ("0", "0"), (32, 32), "whole")
    into = Parallel(("i", "j"), (32, 32), (Store("s", Load("q", ("i",))),))
    kernel = Kernel(
        (1,),
        (Tensor("A", (32, 32), "int32", "whole"), Tensor("C", (32, 32), "int32")),
        (
            Allocate("s", (32, 32), "int32", "shared"), Allocate("q", (32,), "int32", "fragment"),
            Copy(Region("A", ("0", "0"), (32, 32), "slice"), block), Reduce(kind, "s", "q", 1),
            Reduce(kind, "s", "q", 1, clear=False), into, Copy(block, Region("C", ("0", "0"), (32, 32), "slice")),
        ),
    )  # fmt: skip
    (a,) = random_inputs(kernel, 0)
    (bound,) = expected(kernel, [a], REFERENCE)
    once = join.reduce(a, axis=1)
    np.testing.assert_array_equal(bound.value, np.broadcast_to(join(once, once)[:, None], (32, 32)))
    assert check(kernel, Schedule(), Checks(Emulator(event_limit=0))) == ""


def test_what_nothing_uses_is_left_out_alone() -> None:
    """A fault of a tensor that nothing uses stays while the rest is made small, and is told with it."""

    def wrong(kernel: Kernel, schedule: Schedule) -> bool:
        return any(tensor.name == "U" for tensor in kernel.tensors)

    kernel, _ = reduced(hostile(), Schedule(), wrong)
    assert [tensor.name for tensor in kernel.tensors] == ["U"]
    assert kernel.name == "kernel"


def test_names_are_changed_in_texts() -> None:
    made: Kernel = renamed(hostile(), {"k": "bx_out", "register": "k"})
    assert "T.copy(int[T.max(bx_out, 0) * 32, 0], k)" in source_text(made)
    assert 'T.alloc_shared((32, 32), "float32")' in source_text(made)


def test_a_wrong_expectation_is_found_and_made_small() -> None:
    """The laws can fail, and the failure is reduced to what makes it fail."""

    def wrong(kernel: Kernel, schedule: Schedule) -> bool:
        return "s[i, j] * s[i, j]" in source_text(kernel)

    kernel, schedule = reduced(simple(), Schedule("blackhole_p150", {"stages": 3}), wrong)
    assert schedule == Schedule()
    assert len(kernel.body) == 2
    assert kernel.tensors == ()
    assert kernel.grid == (1, 1)


def test_variables_stay_variables() -> None:
    """In another scope, what is stored to a variable would be a name of the value, and the variable would have none."""
    kernel = Kernel((1,), (), (Allocate("x", (1,), "float32", "var"), Scalar("x", Constant(1), "variable")))
    smaller, _ = reduced(kernel, Schedule(), lambda kernel, schedule: "x = 1" in source_text(kernel))
    assert smaller.body == (Allocate("x", (1,), "bfloat16", "var"), Scalar("x", Constant(1), "variable"))


def test_refusals_are_told_apart(tmp_path: Path) -> None:
    unknown = Schedule(options={"policy": "diagonal"})
    with pytest.raises(LawBroken, match="a refusal is expected: UsageError") as caught:
        check(simple(), unknown, Checks())
    assert "kernel.py" not in signature(caught.value)
    big = Kernel((1,), (Tensor("A", (32, 65536), "float32"), Tensor("C", (32, 65536), "float32")), ())
    block = Region("s", ("0", "0"), (32, 65536), "whole")
    there = Copy(Region("A", ("0", "0"), (32, 65536)), block)
    back = Copy(block, Region("C", ("0", "0"), (32, 65536)))
    made = Kernel(big.grid, big.tensors, (Allocate("s", (32, 65536), "float32", "shared"), there, back))
    assert check(made, Schedule(), Checks()) == "L1 is too small"
