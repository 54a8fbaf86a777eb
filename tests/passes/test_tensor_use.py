# pyright: basic
"""Tensors that are not used, and tensors whose elements are used as numbers, made from texts: each use at its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import CORPUS
from tests.said import said
from ttexplore.errors import KernelError, TTExploreError, Unsupported

HEAD = """import ttexplore.language as T
m = T.dynamic("m")
@T.prim_func
def kernel(A: T.Tensor((128, 32), "float32"), S: T.Tensor((4,), "int32"), B: T.Tensor((128, 32), "float32")):
    with T.Kernel(4) as bx:
        a = T.alloc_shared((32, 32), "float32")
        s = T.alloc_shared((4,), "int32")
        T.copy(A[bx * 32, 0], a)
"""
TAIL = "        T.copy(a, B[bx * 32, 0])\n"


def explored(tmp_path: Path, body: str, head: str = HEAD, tail: str = TAIL) -> Any:
    file = tmp_path / "kernels.py"
    file.write_text(head + "".join(f"        {line}\n" for line in body.split("\n")) + tail)
    return ttx.explore(f"{file}::kernel")


PLACE = "the position of a read or write depends on an element of S that not all kernels know"
PLACE_HINT = (
    "use elements of tensors right where they decide, such as A[S[bx] * 32, 0], or a name for one; not in a variable "
    "or a block, and not one for each turn of a T.Parallel"
)
VALUE_HINT = "copy S into an on-chip buffer with T.copy, and read that buffer inside T.Parallel"


@pytest.mark.parametrize(
    ("body", "line", "message", "hint"),
    [
        # As an index, written out, under a name, in a scalar variable, through on-chip memory, in a bound of a region.
        ("row = T.alloc_var('int32')\nrow = 0\nfor k in range(2):\n    T.copy(A[row * 32, 0], a)\n    row = S[bx]", 4,
         "an element of S is used as a scalar",
         "the variable row may change from turn to turn: read the element in the turn of the loop that uses it, right "
         "there or under a name"),
        ("T.copy(S, s)\nfor i in T.Parallel(4):\n    s[i] += 1\nT.copy(A[s[bx] * 32, 0], a)", 3,
         PLACE.replace("of S", "of s"), PLACE_HINT),
        ("for i, j in T.Parallel(32, 32):\n    a[i, j] = A[i, S[j]]", 1, PLACE,
         f"{PLACE_HINT}\nwhy: A0.12 stage_tensors has no rule for the statement in line 10, so it is not true that "
         "each T.Parallel reads and stores blocks on the chip alone"),
        ("for i, j in T.Parallel(32, 32):\n    a[S[i], j] = 1.0", 1, PLACE, PLACE_HINT),
        ("while S[bx] > 0:\n    T.copy(A[0, 0], a)", 0,
         "`while`: how often it turns is only known when the kernel runs",
         "write `for t in range(n)`: n may come from block and loop indices, sizes and elements of input tensors, as "
         "in range(N[bx])"),
        # As a value that leads to a length.
        ("x = T.alloc_local((2,), 'int32')\nx[0] = S[bx] + 1\nfor k in range(x[0]):\n    T.copy(A[k * 32, 0], a)", 2,
         "the length of a loop depends on an element of the block x, which only the compute kernel knows",
         "decide by block indices, loop indices and elements of input tensors; or choose elements in T.Parallel: "
         "T.if_then_else(x[...] > 0, new, old)"),
    ],
)  # fmt: skip
def test_an_element_as_a_number(tmp_path: Path, body: str, line: int, message: str, hint: str) -> None:
    exploration = explored(tmp_path, body)
    error = exploration.error
    assert isinstance(error, Unsupported)
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert error.span.line == HEAD.count("\n") + 1 + line


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("T.copy(A[S[bx] * 32, 0], a)", lambda s, bx: s[bx] * 32),
        ("row = S[bx]\nT.copy(A[row * 32, 0], a)", lambda s, bx: s[bx] * 32),
        ("row = S[bx]\nlater = row * 32 + 16\nT.copy(A[later, 0], a)", lambda s, bx: s[bx] * 32 + 16),
        ("T.copy(A[S[bx]:S[bx] + 32, 0:32], a)", lambda s, bx: s[bx]),
        ("for k in range(S[bx]):\n    T.copy(A[k * 32, 0], a)", lambda s, bx: (s[bx] - 1 if s[bx] else bx) * 32),
        ("for k in T.serial(1, S[0]):\n    T.copy(A[k * 32, 0], a)", lambda s, bx: (s[0] - 1 if s[0] > 1 else bx) * 32),
        ("for k in T.serial(S[0], 4):\n    T.copy(A[k * 32, 0], a)", lambda s, bx: 96),
        ("for k in T.Pipelined(T.ceildiv(S[bx], 32)):\n    T.copy(A[k * 32 + 32, 0], a)",
         lambda s, bx: 32 if s[bx] else bx * 32),
        ("if S[bx] > 1:\n    T.copy(A[0, 0], a)", lambda s, bx: 0 if s[bx] > 1 else bx * 32),
        ("if bx > 0 and S[0] == 1:\n    T.copy(A[0, 0], a)", lambda s, bx: 0 if bx > 0 and s[0] == 1 else bx * 32),
        ("if bx > 2:\n    T.copy(A[32, 0], a)\nelse:\n    T.copy(A[S[bx + 1] * 8, 0], a)",
         lambda s, bx: 32 if bx > 2 else s[bx + 1] * 8),
        ("for i, j in T.Parallel(32, 32):\n    a[i, j] = A[S[bx] * 32 + i, j]", lambda s, bx: s[bx] * 32),
    ],
)  # fmt: skip
def test_an_element_that_decides(tmp_path: Path, body: str, rows: Any) -> None:
    exploration = explored(tmp_path, body)
    assert exploration.error is None, str(exploration.error)
    a = exploration.inputs()[0]
    for s in ([1, 2, 0, 3], [0, 0, 1, 1], [3, 1, 3, 2]):
        inputs = [a, np.array(s, np.int32)]
        padded = np.concatenate([a, np.zeros((64, 32), np.float32)])
        first = [rows(s, bx) for bx in range(4)]
        check = exploration.check(inputs)
        assert check, str(check)
        wanted = np.concatenate([padded[row : row + 32] for row in first])
        np.testing.assert_array_equal(exploration.run(inputs).outputs[0], wanted)


def test_a_launch_grid_of_an_element(tmp_path: Path) -> None:
    error = explored(tmp_path, "pass", HEAD.replace("Kernel(4)", "Kernel(S[0])")).error
    assert error is not None
    assert (error.message, error.hint, error.span and error.span.line) == (
        "the launch grid depends on an element of S, which is known only at run time",
        "launch a constant number of blocks\nwhy: A0.11 name_deciding_elements has no rule for the `for` in line 5, so "
        "it is not true that each element of a tensor that decides something has a name",
        5,
    )


def test_what_the_hint_for_a_value_says_works(tmp_path: Path) -> None:
    """A tensor of one element as a factor, and as a choice."""
    head = HEAD.replace('(4,), "int32"', '(1,), "float32"').replace('(4,), "int32"', '(1,), "float32"')
    body = "T.copy(S, s)\nfor i, j in T.Parallel(32, 32):\n    a[i, j] = T.if_then_else(s[0] > 0, a[i, j] * s[0], -1.0)"
    exploration = explored(tmp_path, body, head)
    a, _ = exploration.inputs()
    for factor in (2.0, -2.0):
        inputs = [a, np.array([factor], np.float32)]
        assert exploration.check(inputs)
        wanted = a * 2 if factor > 0 else a * 0 - 1
        np.testing.assert_array_equal(exploration.run(inputs).outputs[0], wanted)


def test_unused_tensors_are_inputs(tmp_path: Path) -> None:
    """Of any shape and format: they have their places among the inputs, and a note."""
    case = next(case for case in CORPUS if case.name == "unused_tensors")
    exploration = ttx.explore(case.make())
    roles = {layout.name: layout.role for layout in exploration.plan.layouts}
    assert roles == {"U": "input", "A": "input", "V": "input", "B": "output", "W": "input"}
    notes = [note for note in said(exploration.plan) if "nothing reads" in note]
    assert notes == [f"{name} is an input that nothing reads" for name in "UVW"]
    inputs = exploration.inputs(seed=1)
    assert [one.shape for one in inputs] == [(3, 5), (64, 64), (4,), (2, 2, 33, 1)]
    run = exploration.run(inputs)
    np.testing.assert_array_equal(run.outputs[0], np.asarray(inputs[1]))
    assert {one.of for kernel in exploration.plan.signature for one in kernel.common_runtime} == {"A", "B"}
    files = {path.name for path in exploration.export(tmp_path)}
    assert {"main.cpp", "run_ttnn.py"} <= files
    saved = ttx.load(exploration.save(tmp_path / "unused.ttx"))
    assert saved.run().passed
    np.testing.assert_array_equal(saved.run(inputs).outputs[0], run.outputs[0])


@pytest.mark.parametrize("dtype", ["float64", "uint16", "float8_e8m0fnu"])
def test_an_unused_tensor_that_no_tile_holds(tmp_path: Path, dtype: str) -> None:
    """It has its place among the inputs, and changes nothing of the others; one that is read is refused."""
    head = HEAD.replace('S: T.Tensor((4,), "int32")', f'S: T.Tensor((4,), "{dtype}")')
    head = head.replace('s = T.alloc_shared((4,), "int32")', "pass").replace("float32", "bfloat16")
    exploration = explored(tmp_path, "pass", head)
    assert exploration.error is None, str(exploration.error)
    layout = exploration.plan.layout("S")
    assert (layout.position, layout.role, layout.shape, layout.dtype) == (1, "input", (4,), "float32")
    assert layout.reason == f"no tile format supports {dtype}, and nothing reads it"
    assert "S is an input that nothing reads" in said(exploration.plan)
    assert exploration.plan.compute is not None
    assert exploration.plan.compute.reasons == ("16-bit DST: only bfloat16 copies, sums and differences",)
    a, s = exploration.inputs()
    assert s.shape == (4,)
    inputs = [a, np.ones(4, bool if dtype == "bool" else np.int64)]
    assert exploration.check(inputs)
    np.testing.assert_array_equal(exploration.run(inputs).outputs[0], a)
    assert {"main.cpp", "run_ttnn.py"} <= {path.name for path in exploration.export(tmp_path / "code")}
    saved = ttx.load(exploration.save(tmp_path / "unused.ttx"))
    np.testing.assert_array_equal(saved.run(inputs).outputs[0], a)
    read = head.replace("        pass\n", f'        s = T.alloc_shared((4,), "{dtype}")\n')
    error = explored(tmp_path, "T.copy(S, s)", read).error
    assert isinstance(error, Unsupported)
    assert error.message == f"S is {dtype}: no tile format supports this dtype"


def test_an_unused_tensor_with_a_size_of_its_own(tmp_path: Path) -> None:
    exploration = explored(tmp_path, "pass", HEAD.replace("S: T.Tensor((4,)", "S: T.Tensor((m, 3)"))
    assert exploration.error is None
    assert exploration.check([np.ones((128, 32), np.float32), np.ones((7, 3), np.int32)])


def test_a_kernel_that_writes_nothing(tmp_path: Path) -> None:
    error = explored(tmp_path, "pass", tail="").error
    assert isinstance(error, KernelError)
    assert (error.message, error.hint, error.span and error.span.line) == (
        "the kernel writes no tensor", "copy the result to a tensor: T.copy(result, C[...])", 4
    )  # fmt: skip


def test_an_output_that_nothing_writes(tmp_path: Path) -> None:
    head = HEAD.replace("@T.prim_func", "import tilelang\n@tilelang.jit(out_idx=[1])\ndef made():\n  @T.prim_func")
    head = "\n".join(f"  {line}" if line.startswith(("def kernel", "    ")) else line for line in head.split("\n"))
    file = tmp_path / "kernels.py"
    file.write_text(head + f"  {TAIL}  return kernel\n")
    error = ttx.explore(f"{file}::made").error
    assert isinstance(error, KernelError)
    assert error.message == "S is an output, but the kernel never writes it"
    assert error.hint == "write it, or remove it from out_idx= and from the return value"


@pytest.mark.parametrize(
    "body",
    [
        "for i, j in T.Parallel(32, 32):\n    a[i, j] = A[i, S[j]]",
        "row = T.alloc_var('int32')\nrow = 0\nfor k in range(2):\n    T.copy(A[(row % 2) * 32, 0], a)\n    row = S[bx]",
    ],
)
def test_the_reference_of_a_refused_kernel(tmp_path: Path, body: str) -> None:
    """The traced kernel runs where the interpreter knows its statements; the lowering's error is another matter."""
    exploration = explored(tmp_path, body)
    assert exploration.error is not None
    (output,) = exploration.reference()
    assert output.shape == (128, 32)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("while S[bx] > 0:\n    T.copy(A[0, 0], a)", "`while` has not ended after 65,536 turns"),
        ("r = T.alloc_fragment((32,), 'float32')\nT.reduce_bitand(a, r)",
         "T.reduce_bitand joins bits, and a is float32"),
        ("for i, j in T.Parallel(32, 32):\n    a[i, j] = T.atan2(a[i, j], 2.0)",
         "the interpreter does not know tirx.atan2"),
    ],
)  # fmt: skip
def test_a_reference_that_cannot_be_had(tmp_path: Path, body: str, message: str) -> None:
    """It raises one of this project's errors, with a line."""
    with pytest.raises(TTExploreError) as caught:
        explored(tmp_path, body).reference()
    assert caught.value.message == message or not message
    assert caught.value.span is not None
    assert caught.value.hint
