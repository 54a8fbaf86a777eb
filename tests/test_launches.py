# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false, reportCallIssue=false, reportArgumentType=false
"""Kernels of several launches: the numbers of the whole, compared with NumPy; which tensors go from launch to launch;
and what cannot."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.launches import (
    BF16,
    FP32,
    INT32,
    LAUNCHED,
    centred,
    parts_of_output,
    sized,
    synchronized,
    two_products,
)  # fmt: skip
from tests.said import said
from tests.steps import LETTERS
from ttexplore import cli
from ttexplore.errors import KernelError, TTExploreError, Unsupported, UsageError
from ttexplore.language.tracer.kernel import compiled
from ttexplore.session.widget import ExplorerWidget
from ttexplore.tenstorrent import apply_tt_defaults

Array = np.ndarray[Any, Any]


def _stored(values: Array) -> Array:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def _softmax(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)


def _parts(a: Array) -> Array:
    b = (a + 1).reshape(-1, 2, 32, 64)
    b[:, 0] = 2 * a.reshape(-1, 2, 32, 64)[:, 0]
    return b.reshape(a.shape)


def _squares(a: Array) -> tuple[Array, ...]:
    squares = _stored(a * a)
    blocks = squares.reshape(-1, 32, 64)
    return squares, np.concatenate([blocks.sum(axis=0)] * len(blocks))


FORMULAS: dict[str, Callable[..., Any]] = {
    "two_products": lambda a, b, c: _stored(a @ b) @ c,
    "split_softmax": _softmax,
    "centred": lambda a: a - a.mean(axis=0),
    "parts_of_output": _parts,
    "synchronized": _squares,
    "sized": lambda a: np.maximum(a, 0) + 1,
}


@pytest.mark.parametrize("name", LAUNCHED)
@pytest.mark.parametrize("backend", ["reference", "emulator"])
def test_numbers_are_those_of_numpy(name: str, backend: str) -> None:
    explored = ttx.explore(LAUNCHED[name]())
    assert len(explored.launches) == 2
    inputs = [array.astype(np.float64) for array in explored.inputs(seed=3)]
    run = explored.run(inputs, backend=backend)
    assert run.passed, run
    expected = FORMULAS[name](*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(run.outputs) == len(expected)
    for output, wanted in zip(run.outputs, expected, strict=True):
        error = np.abs(output.astype(np.float64) - wanted).max() / np.abs(wanted).max()
        assert error <= (0 if output.dtype == np.int32 else 0.02), (name, error)


@pytest.mark.parametrize("name", LAUNCHED)
def test_every_step_of_every_launch_has_the_result_of_the_kernel(name: str) -> None:
    explored = ttx.explore(LAUNCHED[name]())
    check = explored.check(seed=1)
    assert check.ok, check
    assert len(check.results) == sum(len(launch.steps) for launch in explored.launches)
    assert check.results[0].step.startswith("kernel_1 ")
    assert check.results[-1].step.startswith("kernel_2 ")


def test_tensors_go_from_launch_to_launch() -> None:
    explored = ttx.explore(two_products())
    first, second = explored.launches
    assert first._roles == {"A": "input", "B": "input", "M": "output"}
    assert second._roles == {"C": "input", "D": "output", "M": "input"}
    assert explored._roles == {"A": "input", "B": "input", "C": "input", "D": "output"}
    assert [array.shape for array in explored.inputs()] == [(64, 64), (64, 96), (96, 64)]
    assert [array.shape for array in explored.reference()] == [(64, 64)]


def test_a_tensor_that_a_later_launch_writes_keeps_its_other_parts() -> None:
    first, second = ttx.explore(parts_of_output()).launches
    assert first._roles["B"] == "output"
    assert second._roles["B"] == "inout"
    assert {layout.name: layout.role for layout in second.plan.layouts}["B"] == "inout"
    # It does not read what the first one has left, and so no store needs to have arrived before the next block.
    writer = second.code["writer"].text
    assert writer.index("async_writes_flushed()") < writer.index("async_write_barrier()")
    assert writer.count("async_write_barrier()") == 1


def test_a_tensor_of_the_caller_may_go_from_launch_to_launch() -> None:
    explored = ttx.explore(synchronized())
    assert explored._roles == {"A": "input", "M": "output", "B": "output"}
    assert explored.launches[1]._roles == {"M": "input", "B": "output"}
    assert not any(launch.plan.notes_on_inputs for launch in explored.launches)


def test_an_unused_parameter_remains_an_input() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), BF16), U: T.Tensor((32, 32), BF16), B: T.Tensor((32, 32), BF16)):
        M = T.alloc_global((32, 32), BF16)
        with T.Kernel(1):
            T.copy(A, M)
        with T.Kernel(1):
            T.copy(M, B)

    explored = ttx.explore(kernel)
    assert explored._roles == {"A": "input", "U": "input", "B": "output"}
    assert explored.run().passed


def test_an_unused_tensor_of_alloc_global_is_no_input() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), BF16), B: T.Tensor((32, 32), BF16)):
        M = T.alloc_global((32, 32), BF16)
        with T.Kernel(1):
            T.copy(A, B)
        del M

    explored = ttx.explore(kernel)
    assert explored._roles == {"A": "input", "B": "output"}
    assert [list(launch._roles) for launch in explored.launches] == [["A", "B"]]
    assert explored.run().passed


def test_a_value_that_a_launch_adds_to_is_the_one_before() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), FP32), S: T.Tensor((32, 32), FP32)):
        with T.Kernel(1) as b:
            s = T.alloc_fragment((32, 32), FP32)
            T.fill(s, 7)
            T.copy(s, S)
        with T.Kernel(4) as b:
            a = T.alloc_shared((32, 32), FP32)
            T.copy(A[b * 32, 0], a)
            T.atomic_add(S, a)

    explored = ttx.explore(kernel)
    assert explored._roles == {"A": "input", "S": "output"}
    (a,) = explored.inputs(seed=2)
    run = explored.run([a])
    assert run.passed, run
    np.testing.assert_allclose(run.outputs[0], 7 + a.reshape(4, 32, 32).sum(axis=0), atol=1e-5)


def test_python_may_repeat_a_launch() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), INT32), B: T.Tensor((64, 64), INT32)):
        tensors = [A, *[T.alloc_global((64, 64), INT32) for _ in [*range(2)]], B]
        for step in [*range(3)]:
            source, target = tensors[step], tensors[step + 1]
            with T.Kernel(2) as b:
                a = T.alloc_shared((32, 64), INT32)
                T.copy(source[b * 32, 0], a)
                for i, j in T.Parallel(32, 64):
                    a[i, j] = a[i, j] * 3 + step
                T.copy(a, target[b * 32, 0])

    explored = ttx.explore(kernel)
    (a,) = explored.inputs()
    wanted = ((a * 3) * 3 + 1) * 3 + 2
    assert [launch.kernel.name for launch in explored.launches] == ["kernel_1", "kernel_2", "kernel_3"]
    assert np.array_equal(explored.run([a]).outputs[0], wanted)


def test_sizes_are_those_of_all_launches() -> None:
    explored = ttx.explore(sized(), sizes={"n": 70})
    assert [launch.plan.size_values for launch in explored.launches] == [{"n": 70}, {"n": 70}]
    a = np.linspace(-1, 1, 100 * 64).reshape(100, 64)
    run = explored.run([a])
    assert run.outputs[0].shape == (100, 64)
    assert run.passed
    np.testing.assert_allclose(run.outputs[0].astype(np.float64), np.maximum(a, 0) + 1, atol=0.01)
    with pytest.raises(UsageError, match="the kernel has no size m"):
        explored.with_sizes(m=3)


def test_options_are_those_of_all_launches_and_layouts_those_of_their_tensors() -> None:
    explored = ttx.explore(two_products(), options={"policy": "strided", "layouts": {"C": "L1", "M": "L1"}})
    assert {launch.plan.options["policy"] for launch in explored.launches} == {"strided"}
    memory = [{one.name: one.memory for one in launch.plan.layouts} for launch in explored.launches]
    assert memory == [{"A": "dram", "B": "dram", "M": "l1"}, {"C": "l1", "D": "dram", "M": "l1"}]
    assert explored.run().passed
    other = explored.fork(policy="contiguous")
    assert {launch.plan.options["policy"] for launch in other.launches} == {"contiguous"}
    assert other.launches[0].plan.layouts[2].memory == "l1"
    refused = ttx.explore(two_products(), options={"layouts": {"X": "L1"}}).error
    assert refused is not None
    assert "X" in refused.message


def test_depths_are_those_of_the_buffers_of_a_launch() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), BF16), B: T.Tensor((64, 64), BF16)):
        M = T.alloc_global((64, 64), BF16)
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), BF16)
            T.copy(A[bx * 32, 0], a)
            T.copy(a, M[bx * 32, 0])
        with T.Kernel(2) as bx:
            b = T.alloc_shared((32, 64), BF16)
            T.copy(M[bx * 32, 0], b)
            T.copy(b, B[bx * 32, 0])

    explored = ttx.explore(kernel, options={"cb_depth": {"b": 3}})
    assert explored.error is None, str(explored.error)
    assert [[one.stages for one in launch.plan.buffers] for launch in explored.launches] == [[2], [3]]
    refused = ttx.explore(kernel, options={"cb_depth": {"c": 3}}).error
    assert refused is not None
    assert refused.message == "there is no circular buffer 'c'"


def test_what_is_said_in_a_launch_is_said_of_that_launch() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), BF16), B: T.Tensor((64, 64), BF16)):
        M = T.alloc_global((64, 64), BF16)
        T.annotate_tt_layout({M: {"memory": "L1"}})
        with T.Kernel(2) as b:
            T.annotate_tt_schedule(policy="strided")
            T.use_swizzle(10)
            T.copy(A[b * 32 : b * 32 + 32, :], M[b * 32 : b * 32 + 32, :])
        with T.Kernel(2) as b:
            T.copy(M[b * 32 : b * 32 + 32, :], B[b * 32 : b * 32 + 32, :])

    first, second = ttx.explore(kernel).launches
    assert [launch.plan.options["policy"] for launch in (first, second)] == ["strided", None]
    assert [any("swizzle" in note for note in said(launch.plan)) for launch in (first, second)] == [True, False]
    assert [launch.plan.layout("M").memory for launch in (first, second)] == ["l1", "l1"]


def test_an_error_of_one_launch_is_that_of_the_whole() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), BF16), B: T.Tensor((64, 64), BF16)):
        M = T.alloc_global((64, 64), BF16)
        with T.Kernel(1):
            T.copy(A, M)
        with T.Kernel(1):
            a = T.alloc_fragment((64, 64), BF16)
            T.copy(a, B)

    explored = ttx.explore(kernel)
    assert explored.launches[0].error is None
    assert explored.error is explored.launches[1].error
    for act in (explored.run, explored.check, lambda: explored.fork(policy="strided").run()):
        with pytest.raises(KernelError, match="a is read before anything is written to it"):
            act()


def test_a_launch_has_steps_and_the_whole_has_not() -> None:
    explored = ttx.explore(centred())
    assert repr(explored) == "<exploration of kernel for wormhole_n150: 2 launches>"
    for ask in (
        lambda: explored.steps, lambda: explored.plan, lambda: explored.code, lambda: explored.trace,
        lambda: explored.core_map, lambda: explored.fork(at="B1", policy="strided"), lambda: explored.timeline(),
        lambda: explored.run(code={"compute": ""}),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=r"kernel has 2 launches, each with .* of its own") as caught:
            ask()
        assert caught.value.hint == "use those of one launch: ex.launches[0], and so on"
    (launch,) = explored.launches[0].launches
    assert launch is explored.launches[0]


# Refusals


HEADER = """
import tilelang.language as T

@T.prim_func
def kernel(A: T.Tensor((128, 64), "float32"), B: T.Tensor((128, 64), "float32"), C: T.Tensor((64,), "int32")):
"""


@pytest.mark.parametrize(
    ("body", "line", "kind", "message", "hint"),
    [
        (
            """
            with T.Kernel(2) as bx:
                a = T.alloc_shared((64, 64))
                T.copy(A[bx * 64, 0], a)
            with T.Kernel(2) as by:
                T.copy(a, B[by * 64, 0])
            """,
            5, KernelError, "a is allocated in another T.Kernel",
            "T.copy it to a tensor of T.alloc_global there, and from that tensor here",
        ),
        (
            """
            with T.Kernel(2) as bx:
                T.copy(A, B)
            with T.Kernel(2) as by:
                T.copy(A[by * 64 : by * 64 + 64, :], B[bx * 64 : bx * 64 + 64, :])
            """,
            4, KernelError, "bx has its value in another T.Kernel", "compute it again in this T.Kernel",
        ),
        (
            """
            with T.Kernel(2) as bx:
                n = C[bx]
                T.copy(A, B)
            with T.Kernel(2) as by:
                for k in T.serial(n):
                    T.copy(A, B)
            """,
            5, KernelError, "n has its value in another T.Kernel", "compute it again in this T.Kernel",
        ),
        (
            """
            M = T.alloc_global((128, 64), "float32")
            with T.Kernel(2) as bx:
                T.copy(M[bx * 64 : bx * 64 + 64, :], B[bx * 64 : bx * 64 + 64, :])
            with T.Kernel(2) as by:
                T.copy(A[by * 64 : by * 64 + 64, :], M[by * 64 : by * 64 + 64, :])
            """,
            3, KernelError, "M is read here, and no launch before this one has written it",
            "write it in an earlier T.Kernel, or make it a parameter if the caller fills it",
        ),
        (
            """
            M = T.alloc_global((128, 64), "float32")
            with T.Kernel(2) as bx:
                T.atomic_add(M[bx * 64, 0], A[bx * 64 : bx * 64 + 64, :])
            with T.Kernel(1) as by:
                T.copy(M, B)
            """,
            3, KernelError, "M is read here, and no launch before this one has written it",
            "write it in an earlier T.Kernel, or make it a parameter if the caller fills it",
        ),
        (
            """
            with T.Kernel(2) as bx:
                a = T.alloc_shared((64, 64))
                T.copy(A[bx * 64, 0], a)
                T.sync_grid()
                T.copy(a, B[bx * 64, 0])
            """,
            5, KernelError, "a is written before T.sync_grid and read after it",
            "what follows T.sync_grid is a launch of its own: T.copy the block to a tensor, and from it",
        ),
        (
            """
            with T.Kernel(2) as bx:
                a = T.alloc_fragment((64, 64))
                T.clear(a)
                T.sync_grid()
                for k in T.serial(2):
                    for i, j in T.Parallel(64, 64):
                        a[i, j] += A[bx * 64 + i, j]
                T.copy(a, B[bx * 64, 0])
            """,
            7, KernelError, "a is written before T.sync_grid and read after it",
            "what follows T.sync_grid is a launch of its own: T.copy the block to a tensor, and from it",
        ),
        *(
            (
                f"""
                with T.Kernel(2) as bx:
                    a = T.alloc_fragment((64, 64))
                    T.clear(a)
                    T.sync_grid()
                    {part}
                    T.copy(a, B[bx * 64, 0])
                """,
                line, KernelError, "a is written before T.sync_grid and written in part after it",
                "what follows T.sync_grid is a launch of its own: T.copy the block to a tensor, and from it",
            )
            for line, part in (
                (5, "a[0, 0] = 1.0"),
                (5, "T.copy(A[0:64, 0:32], a[:, 0:32])"),
                (5, "T.clear(a[0:32, :])"),
                (6, "for i, j in T.Parallel(32, 64):\n                        a[i, j] = A[i, j]"),
                (6, "for i, j in T.Parallel(32, 64):\n                        a[i + 32, j] = A[i, j]"),
                (7, "for i, j in T.Parallel(64, 64):\n                        if i < 9:\n"
                    "                            a[i, j] = A[i, j]"),
            )
        ),
        (
            """
            with T.Kernel(2) as bx:
                n = C[bx] + 0
                T.copy(A, B)
                T.sync_grid()
                for k in T.serial(n):
                    T.copy(B[0:64, :], B[64:128, :])
            """,
            5, KernelError, "n is read before T.sync_grid and used after it",
            "read it again after T.sync_grid: what follows is a launch of its own",
        ),
        (
            """
            with T.Kernel(2) as bx:
                b = T.alloc_barrier(128)
                T.barrier_arrive(b)
                T.barrier_wait(b, 0)
                T.copy(A, B)
                T.sync_grid()
                T.barrier_wait(b, 1)
                T.copy(A, B)
            """,
            7, KernelError, "b is written before T.sync_grid and read after it",
            "what follows T.sync_grid is a launch of its own: T.copy the block to a tensor, and from it",
        ),
        (
            """
            with T.Kernel(2) as bx:
                for k in T.serial(2):
                    T.copy(A, B)
                    T.sync_grid()
            """,
            4, Unsupported, "T.sync_grid inside a loop or a branch is not lowered",
            "put it at the top level of T.Kernel, or let Python run the loop: `for k in [*range(n)]` unrolls it",
        ),
        (
            "T.sync_grid()", 1, KernelError, "T.sync_grid is outside T.Kernel",
            "leave it out: launches wait for each other",
        ),
        (
            """
            with T.Kernel(2) as bx:
                M = T.alloc_global((64, 64), "float32")
            """,
            2, KernelError, "T.alloc_global is inside T.Kernel",
            "allocate before `with T.Kernel(...)`: all blocks share the tensor",
        ),
        (
            'M = T.alloc_global((64, 64), "float32", "shared")', 1, KernelError,
            "T.alloc_global: unknown scope 'shared'", "remove scope=",
        ),
        (
            """
            with T.Kernel(2) as bx:
                T.copy(A, B)
            a = T.alloc_shared((64, 64))
            """,
            3, KernelError, "T.alloc_shared is outside T.Kernel", "allocate inside `with T.Kernel(...)`",
        ),
        (
            """
            with T.Kernel(2) as bx:
                T.copy(A, B)
            T.copy(B, A)
            """,
            3, KernelError, "a statement is outside T.Kernel", "move it into `with T.Kernel(...)`",
        ),
        (
            """
            if C[0] > 0:
                with T.Kernel(2) as bx:
                    T.copy(A, B)
            """,
            2, KernelError, "T.Kernel is inside a loop or a branch", "put it at the top level of the kernel",
        ),
    ],
)  # fmt: skip
def test_what_launches_cannot_share(
    tmp_path: Path, body: str, line: int, kind: type[Exception], message: str, hint: str
) -> None:
    text = textwrap.dedent(body).strip("\n")
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + textwrap.indent(text, "    ") + "\n")
    with pytest.raises(kind) as caught:
        ttx.explore(f"{path}::kernel")
    error = caught.value
    assert isinstance(error, TTExploreError)
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert error.span.line - HEADER.count("\n") == line


def test_a_module_of_the_documents_holds_one_launch() -> None:
    with pytest.raises(UsageError) as caught:
        apply_tt_defaults(centred())
    assert caught.value.message == "kernel has 2 launches, and a module holds one"
    assert caught.value.hint == "explore it: ttexplore.explore(kernel).launches"


def test_an_output_that_no_launch_writes_is_refused() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), BF16), B: T.Tensor((64, 64), BF16), U: T.Tensor((64, 64), BF16)):
        M = T.alloc_global((64, 64), BF16)
        with T.Kernel(1):
            T.copy(A, M)
        with T.Kernel(1):
            T.copy(M, B)

    explored = ttx.explore(compiled(kernel, out_idx=[1, 2]))
    assert explored.error is not None
    assert explored.error.message == "U is an output, but the kernel never writes it"
    assert ttx.explore(compiled(kernel, out_idx=[1])).error is None


# Showing and exporting


def test_an_export_has_a_folder_for_each_launch_and_a_runner_of_all(tmp_path: Path) -> None:
    explored = ttx.explore(two_products())
    paths = explored.export(tmp_path / "out")
    for number, launch in enumerate(explored.launches, 1):
        for name, listing in launch.files.items():
            assert (tmp_path / "out" / f"launch_{number}" / name).read_text() == listing.text
    whole = json.loads((tmp_path / "out" / "launches.json").read_text())
    assert whole == {
        "version": 1, "kernel": "kernel", "launches": ["launch_1", "launch_2"],
        "inputs": [
            {"name": "A", "shape": [64, 64], "dtype": "bfloat16"},
            {"name": "B", "shape": [64, 96], "dtype": "bfloat16"},
            {"name": "C", "shape": [96, 64], "dtype": "bfloat16"},
        ],
        "outputs": [{"name": "D", "shape": [64, 64], "dtype": "float32"}],
    }  # fmt: skip
    assert len(paths) == 2 * len(explored.launches[0].files) + 2
    assert all(path.exists() for path in paths)


def test_the_exported_runner_passes_tensors_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explored = ttx.explore(parts_of_output())
    explored.export(tmp_path)
    (a,) = explored.inputs(seed=1)
    np.save(tmp_path / "given.npy", a)
    made: list[tuple[str, list[str]]] = []
    sdk = types.ModuleType("ttnn")
    for name in ("bfloat16", "float32", "int32", "bfloat8_b"):
        setattr(sdk, name, name)
    sdk.open_device = lambda device_id: "device"  # type: ignore[attr-defined]
    sdk.close_device = sdk.synchronize_device = lambda device: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ttnn", sdk)
    module: Any = _module(tmp_path / "run_launches.py")
    launches = {str(tmp_path / f"launch_{n}"): launch for n, launch in enumerate(explored.launches, 1)}
    own = module.runner

    def runner(folder: str) -> Any:
        """The runner of a launch, whose device is the emulator."""
        one, launch = own(folder), launches[str(tmp_path / folder)]

        def start(plan: Any, on_device: dict[str, Array]) -> None:
            tensors = launch._tensors(("input", "inout"))
            made.append((folder, [tensor.name for tensor in tensors]))
            outputs = launch.run([on_device[tensor.name] for tensor in tensors]).outputs
            on_device |= {f"{t.name}": o for t, o in zip(launch._tensors(("output", "inout")), outputs, strict=True)}

        one.check_chip = lambda plan, device: None
        one.tensors = lambda plan, inputs, device: dict(
            zip((x["name"] for x in sorted(plan["layouts"], key=lambda x: x["position"]) if x["role"] != "output"),
                inputs, strict=True)
        )  # fmt: skip
        one.launch = start
        one.results = lambda plan, on_device: {
            x["name"]: on_device[x["name"]] for x in plan["layouts"] if x["role"] != "input"
        }
        return one

    module.runner = runner
    monkeypatch.setattr(sys, "argv", ["run", "--inputs", str(tmp_path / "given.npy"), "--out", str(tmp_path)])
    module.main()
    assert made == [("launch_1", ["A"]), ("launch_2", ["A", "B"])]
    np.testing.assert_array_equal(np.load(tmp_path / "B.npy"), _parts(a))
    monkeypatch.setattr(sys, "argv", ["run", "--inputs", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="the kernel takes 1 inputs, A; 0 are given"):
        module.main()


def _module(path: Path) -> types.ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_nothing_is_exported_if_a_launch_fails(tmp_path: Path) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), BF16), B: T.Tensor((64, 64), BF16)):
        with T.Kernel(1):
            T.copy(A, B)
        with T.Kernel(1):
            a = T.alloc_fragment((64, 64), BF16)
            T.copy(a, B)

    explored = ttx.explore(kernel)
    with pytest.raises(KernelError, match="before anything is written"):
        explored.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert repr(explored) == "<exploration of kernel for wormhole_n150: kernel_2 failed at A2>"
    assert '<td><span class="bad">✖</span> failed at A2</td>' in explored._repr_html_()


def test_launches_are_shown_with_their_tensors(tmp_path: Path) -> None:
    explored = ttx.explore(two_products())
    lines = str(explored).splitlines()
    assert lines[:5] == [
        "kernel  wormhole_n150  2 launches", "", "launch of a kernel  reads  writes",
        f"kernel_1            A, B   M       {len(LETTERS)} steps",
        f"kernel_2            C, M   D       {len(LETTERS)} steps",
    ]  # fmt: skip
    assert "lower_shared_to_cb" in str(explored)
    shown = explored._repr_html_()
    assert '<th scope="row">kernel_1</th><td class="m">A, B</td><td class="m">M</td>' in shown
    page = explored.report(tmp_path / "page.html", run=False).read_text()
    assert re.findall('<a href="#lowering=(.*?)">', page) == ["kernel_1", "kernel_2"]
    own = explored.launches[1].report(tmp_path / "own.html", run=False).read_text()
    (sent,) = re.findall('"data": "(.*?)"', own)
    assert sent in page


def test_the_explorer_of_a_launch_tells_when_the_kernel_has_changed() -> None:
    launch = ttx.explore(two_products()).launches[1]
    cell = textwrap.dedent(launch.kernel.source.text)
    elsewhere = dataclasses.replace(launch, kernel=dataclasses.replace(launch.kernel, file="cell 3"))
    widget = ExplorerWidget(elsewhere)
    widget.kernel_changed(cell)
    assert widget.stale == ""
    widget.kernel_changed(cell.replace("T.clear(c)", "T.fill(c, 1)"))
    assert widget.stale == "kernel_2 has changed since this exploration was made: explore it again"


def test_the_command_shows_runs_checks_and_exports_launches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        HEADER + '    M = T.alloc_global((128, 64), "float32")\n'
        "    with T.Kernel(1):\n        T.copy(A, M)\n    with T.Kernel(1):\n        T.copy(M, B)\n"
    )
    kernel = f"{path}::kernel"
    for words, status in (
        (["show", kernel], 0), (["show", kernel, "--launch", "2", "--step", "C1"], 0), (["run", kernel], 0),
        (["check", kernel], 0), (["export", kernel, "-o", str(tmp_path / "out")], 0),
        (["report", kernel, "--no-run", "-o", str(tmp_path / "page.html")], 0),
        (["show", kernel, "--step", "C1"], 2), (["show", kernel, "--launch", "3"], 2),
        (["save", kernel, "-o", str(tmp_path / "saved.ttx")], 2),
    ):  # fmt: skip
        assert cli.main([*words, "--json"]) == status, words
        answer = json.loads(capsys.readouterr().out)
        assert ("error" in answer) == (status != 0), words
    assert (tmp_path / "out" / "run_launches.py").exists()
    cli.main(["show", kernel, "--json"])
    assert [one["kernel"] for one in json.loads(capsys.readouterr().out)["launches"]] == ["kernel_1", "kernel_2"]
    with pytest.raises(UsageError) as caught:
        cli._run(["show", kernel, "--code", "reader"], as_json=False)
    assert caught.value.message == "kernel has 2 launches, each with steps and code"
    assert caught.value.hint == "name one: --launch 1"
    with pytest.raises(UsageError, match="there is no launch 3") as caught:
        cli._run(["show", kernel, "--launch", "3"], as_json=False)
    assert caught.value.hint == "the kernel has 2, counted from 1"


def test_random_numbers_that_decide_do_so_for_all_launches() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((4, 32, 32), FP32), W: T.Tensor((2,), INT32), B: T.Tensor((2, 32, 32), FP32)
    ):  # fmt: skip
        M = T.alloc_global((2, 32, 32), FP32)
        with T.Kernel(2) as b:
            a = T.alloc_shared((32, 32), FP32)
            T.copy(A[W[b], :, :], a)
            T.copy(a, M[b, :, :])
        with T.Kernel(2) as b:
            a, m = T.alloc_shared((32, 32), FP32), T.alloc_shared((32, 32), FP32)
            T.copy(A[W[b] + 1, :, :], a)
            T.copy(M[b, :, :], m)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] - m[i, j]
            T.copy(a, B[b, :, :])

    explored = ttx.explore(kernel)
    for seed in range(4):
        a, w = explored.inputs(seed=seed)
        assert ((w >= 0) & (w <= 2)).all(), w
        run = explored.run([a, w])
        assert run.passed, run
        np.testing.assert_allclose(run.outputs[0], a[w + 1] - a[w], atol=1e-6)


def test_a_launch_that_stores_nothing() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), FP32), B: T.Tensor((32, 32), FP32)):
        M = T.alloc_global((32, 32), FP32)
        with T.Kernel(1):
            a, m = T.alloc_shared((32, 32), FP32), T.alloc_shared((32, 32), FP32)
            T.copy(A, a)
            T.copy(a, M)
            T.sync_grid()
            T.copy(M, m)  # it begins here
            for i, j in T.Parallel(32, 32):
                m[i, j] = m[i, j] + 1
            T.sync_grid()
            T.copy(M, a)
            T.copy(a, B)

    with pytest.raises(KernelError, match="is a launch of its own, and writes no tensor") as caught:
        ttx.explore(kernel)
    error = caught.value
    assert error.code == "TTX-K007"
    assert error.span is not None
    assert Path(__file__).read_text().splitlines()[error.span.line - 1].endswith("# it begins here")
    assert (error.hint or "").startswith("copy its result to a tensor")
