"""Inputs that nobody gives, by kind, and arrays by name: what they hold, where they are taken, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import copy_block, elementwise, gemm
from tests.corpus.sizes import any_size_gemm
from ttexplore.cli import main
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.ops.small import numpy_dtype
from ttexplore.plan import FORMAT_OF_DTYPE, SMALL_FLOATS
from ttexplore.session.inputs import INPUT_KINDS, Tensor, arrays_for, counted, make_inputs, named_inputs

SHAPES = ((3,), (64, 96), (2, 3, 32))


@pytest.fixture(scope="module")
def product() -> Exploration:
    return ttx.explore(gemm(64, 64, 64, 32, 32, 32))


@pytest.mark.parametrize("dtype", FORMAT_OF_DTYPE)
@pytest.mark.parametrize("kind", INPUT_KINDS)
def test_each_kind_has_each_dtype_and_shape_and_is_the_same_each_time(kind: str, dtype: str) -> None:
    tensors = [Tensor(f"T{number}", shape, dtype) for number, shape in enumerate(SHAPES)]
    made, again, other = (make_inputs(kind, tensors, seed) for seed in (5, 5, 6))
    for one, same, tensor in zip(made, again, tensors, strict=True):
        assert (one.shape, one.dtype) == (tensor.shape, numpy_dtype(dtype))
        assert np.isfinite(one.astype(np.float64)).all()
        np.testing.assert_array_equal(one, same)
    differ = any((one != another).any() for one, another in zip(made, other, strict=True))
    assert differ == INPUT_KINDS[kind].seeded


@pytest.mark.parametrize("dtype", FORMAT_OF_DTYPE)
def test_what_the_kinds_hold(dtype: str) -> None:
    def made(kind: str, *shape: int) -> Any:
        return make_inputs(kind, [Tensor("A", shape, dtype)])[0].astype(np.float64)

    np.testing.assert_array_equal(made("ones", 2, 3), np.ones((2, 3)))
    np.testing.assert_array_equal(made("counting", 20, 32), np.arange(640).reshape(20, 32) % counted(dtype))
    np.testing.assert_array_equal(made("identity", 2, 3, 4), np.stack([np.eye(3, 4)] * 2))
    np.testing.assert_array_equal(made("identity", 3), [1, 0, 0])
    uniform, extreme = made("uniform", 32, 32), made("extreme", 32, 32)
    integers = {"int32": 1000, "uint8": 255, "int8": 127, "uint4": 15, "int4": 7}
    assert 0 <= uniform.min() < uniform.max() <= integers.get(dtype, 1)
    assert len(np.unique(extreme)) >= {"bool": 2, "uint4": 3}.get(dtype, 5)
    largest = {"int32": 2**15, "uint8": 255, "int8": 128, "uint4": 15, "int4": 8, "bool": 1}
    largest |= {name: float(ml_dtypes.finfo(name).max) for name in SMALL_FLOATS}
    assert np.abs(extreme).max() == largest.get(dtype, 2**14)


def test_runs_checks_and_records_take_kinds(product: Exploration) -> None:
    run = product.run("ones")
    assert run.passed
    np.testing.assert_array_equal(run.outputs[0].astype(np.float64), np.full((64, 64), 64.0))
    identity = product.run("identity", "interpreter")
    np.testing.assert_array_equal(identity.outputs[0].astype(np.float64), np.eye(64))
    assert product.check("counting").ok
    assert product.timeline(inputs="ones").end > 0
    with pytest.raises(UsageError, match="there is no kind of inputs 'one'") as caught:
        product.run("one")
    assert caught.value.hint.startswith("did you mean ones?")


def test_rows_that_change_places_are_seen_by_counting() -> None:
    exploration = ttx.explore(copy_block("bfloat16"))
    (held,) = exploration.inputs(kind="counting")
    assert len({row.tobytes() for row in held}) == len(held)
    np.testing.assert_array_equal(exploration.run("counting").outputs[0], held)


def test_arrays_by_the_names_of_the_tensors() -> None:
    exploration = ttx.explore(elementwise(lambda a, b: a - b, "float32"))
    a, b = np.full((128, 64), 3.0), np.full((128, 64), 1)
    np.testing.assert_array_equal(exploration.run({"B": b, "A": a}, "interpreter").outputs[0], np.full((128, 64), 2.0))
    for given, message in (
        ({"A": a}, "input B is missing"),
        ({"A": a, "b": b}, "there is no input 'b'"),
        ([a, b.T], r"input 1 \(B\) has the shape \(64, 128\), but the kernel takes \(128, 64\)"),
        ([a, b + 1j], r"input 1 \(B\) has the dtype complex128, but the kernel takes float32"),
        ([[["x"]], b], r"input 0 \(A\) has the dtype str32, but the kernel takes float32"),
        ([[[1], [1, 2]], b], r"input 0 \(A\) has the type list, but the kernel takes arrays"),
        ([a], "the number of inputs is 1, but the kernel takes 2"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            exploration.run(given)
        assert caught.value.hint
        assert caught.value.code in ("TTX-U005", "TTX-U001")


def test_dynamic_sizes_are_those_of_arrays_by_name() -> None:
    exploration = ttx.explore(any_size_gemm())
    run = exploration.run({"A": np.ones((64, 32)), "B": np.ones((32, 96))}, "interpreter")
    assert run.outputs[0].shape == (64, 96)
    assert run.passed


def test_variables_are_looked_up_and_nothing_is_computed() -> None:
    a, b = np.zeros(2), np.ones(2)
    variables = {"a": a, "pair": [a, b], "named": {"A": a}, "number": 3, "_hidden": a, "Out": {}}
    assert named_inputs(" a, number ,", variables) == [a, 3]
    assert named_inputs("a", variables) == [a]
    assert named_inputs("pair", variables) == [a, b]
    assert named_inputs("named", variables) == {"A": a}
    by_name = "assign the array to a variable in a cell, and enter the variable's name"
    for text, message, hint in (
        ("", "no variable is named for the inputs", "enter names of arrays, for example a, b"),
        (
            "a + b",
            "inputs are looked up by name, and 'a + b' is not a name",
            by_name,
        ),
        (
            "exit()",
            "inputs are looked up by name, and 'exit()' is not a name",
            by_name,
        ),
        ("a, pairs", "there is no variable 'pairs'", "did you mean pair? use one of a, named, pair"),
        ("__builtins__", "there is no variable '__builtins__'", "use one of a, named, pair"),
    ):
        with pytest.raises(UsageError) as caught:
            named_inputs(text, variables)
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_what_has_no_numbers_says_so() -> None:
    class Strange:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("on another device")

    with pytest.raises(UsageError, match=r"input 0 \(A\) has the type Strange, but the kernel takes arrays") as caught:
        arrays_for([Strange()], [Tensor("A", (2,), "float32")])
    assert caught.value.hint == "pass an array; NumPy says: RuntimeError: on another device"


def test_a_saved_exploration_takes_kinds_and_compares_what_it_kept(product: Exploration, tmp_path: Path) -> None:
    saved = ttx.load(product.save(tmp_path / "gemm.ttx"))
    run = saved.run("ones")
    assert not run.compared
    np.testing.assert_array_equal(run.outputs[0], product.run("ones").outputs[0])
    assert saved.run("random").passed


def test_the_command_takes_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = ["notebooks/kernels/gemm.py::matmul", "M=64", "N=64", "K=64", "block_M=32", "block_N=32"]
    assert main(["run", *kernel, "--inputs", "counting", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"]
    assert main(["check", *kernel, "--inputs", "ones"]) == 0
    assert main(["run", *kernel, "--inputs", "on"]) == 2
    assert "there is no kind of inputs 'on'" in capsys.readouterr().err


def test_masked_elements_are_no_numbers() -> None:
    exploration = ttx.explore(copy_block())
    (tensor,) = exploration._tensors(("input",))
    array = np.ma.masked_equal(np.arange(np.prod(tensor.shape)).reshape(tensor.shape), 5)
    with pytest.raises(UsageError, match="is a masked array, of which some elements are no numbers"):
        exploration.run([array])
    assert exploration.run([array.filled(0)]).passed
