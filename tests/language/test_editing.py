# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
"""Kernels whose text is edited: what the new text sees, what stays as it was, and what is told of a wrong one."""

from __future__ import annotations

import linecache
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.launches import two_products
from ttexplore.control import Control
from ttexplore.errors import Cancelled, KernelError, TTExploreError, UsageError
from ttexplore.exploration import Exploration

GEMM = "notebooks/kernels/gemm.py"
SCALE = 2.0


def factory(n: int, factor: float, unused: int = 3, dtype: str = "float32") -> Any:
    @T.prim_func
    def scaled(A: T.Tensor((n, n), dtype), B: T.Tensor((n, n), dtype)):
        with T.Kernel(1):
            block = T.alloc_fragment((n, n), dtype)
            T.copy(A, block)
            for i, j in T.Parallel(n, n):
                block[i, j] = block[i, j] * factor
            T.copy(block, B)

    return scaled


def text(exploration: Exploration, *changes: tuple[str, str]) -> str:
    made = exploration.kernel.source.text
    for old, new in changes:
        assert old in made
        made = made.replace(old, new)
    return made


def result(exploration: Exploration) -> Any:
    (out,) = exploration.run([np.arange(32 * 32).reshape(32, 32) % 8], backend="interpreter").outputs
    return out


def wanted(factor: float) -> Any:
    return factor * (np.arange(32 * 32).reshape(32, 32) % 8)


def test_a_kernel_of_a_factory_sees_what_it_saw() -> None:
    """Its module's names, the factory's arguments, and such arguments as its first text did not use."""
    ex = ttx.explore(factory(32, 3.0))
    assert np.array_equal(result(ex), wanted(3.0))
    edited = ex.edited(text(ex, ("* factor", "* factor * unused")))
    assert np.array_equal(result(edited), wanted(9.0))
    # The module's names stay what they are.
    again = edited.edited(text(ex, ("* factor", "* SCALE")))
    assert np.array_equal(result(again), wanted(SCALE))
    assert "scaled" not in globals()
    assert edited.check()
    # Names defined in the text itself, dedented, under another name.
    whole = textwrap.dedent(text(ex, ("* factor", "* four"), ("def scaled", "def other")))
    named = ex.edited(f"four = 4.0\n{whole}")
    assert (named.kernel.name, named.kernel.file) == ("other", f"{__file__} (edited)")
    assert np.array_equal(result(named), wanted(4.0))


def test_the_first_text_is_the_first_kernel() -> None:
    ex = ttx.explore(factory(32, 3.0))
    edited = ex.edited(text(ex, ("* factor", "+ factor")))
    assert edited.kernel is not ex.kernel
    assert edited.edited(text(ex)).kernel is ex.kernel
    assert str(edited.steps["E1"].listing) != str(ex.steps["E1"].listing)


def test_options_target_arguments_and_sizes_stay() -> None:
    sizes = {"M": 128, "N": 128, "K": 64, "block_M": 64, "block_N": 64}
    ex = ttx.explore(f"{GEMM}::matmul", target="blackhole_p150", options={"cores": (2, 1)}, **sizes)
    edited = ex.edited(text(ex, ("num_stages=2", "num_stages=3")))
    assert (edited.target, edited.options) == (ex.target, ex.options)
    assert [one.shape for one in edited.inputs()] == [one.shape for one in ex.inputs()]
    assert {one.name: one.stages for one in edited.plan.buffers}["A_shared"] == 3
    assert edited.check()
    # Of an eager kernel defaults can be edited, too; arguments win over them.
    pages = {one.name: one.pages for one in ex.plan.buffers}
    others = [text(ex, ("block_K=32", "block_K=64")), text(ex, ("block_M=128", "block_M=32"))]
    found = [{one.name: one.pages for one in edited.edited(other).plan.buffers} for other in others]
    assert [one == pages for one in found] == [False, True]
    sized = ttx.explore(sizes_kernel(), sizes={"n": 96})
    assert sized.edited(text(sized, ("+ 1.0", "+ 2.0"))).plan.size_values == {"n": 96}
    assert sized.edited(text(sized, ("(n,", "(64,"))).plan.size_values == {}


def sizes_kernel() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 32), "float32"), B: T.Tensor((n, 32), "float32")):
        with T.Kernel(T.ceildiv(n, 32)) as bx:
            block = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], block)
            for i, j in T.Parallel(32, 32):
                block[i, j] = block[i, j] + 1.0
            T.copy(block, B[bx * 32, 0])

    return kernel


def test_what_was_done_after_the_definition_is_done_again() -> None:
    """Outputs selected by position and annotations from outside; decorators in the text count once."""
    chosen: Any = T.jit(factory, out_idx=[1])
    ex = ttx.explore(T.annotate_tt_schedule(chosen.compile(32, 3.0), {"policy": "strided"}))
    assert (ex.kernel.outputs, len(ex.kernel.annotations)) == ((1,), 1)
    edited = ex.edited(text(ex, ("* factor", "* 5.0")))
    assert (edited.kernel.outputs, edited.kernel.annotations) == ((1,), ex.kernel.annotations)
    assert np.array_equal(result(edited), wanted(5.0))
    more = text(ex, ("B: T.Tensor", "C: T.Tensor((n, n), dtype), B: T.Tensor"))
    with pytest.raises(UsageError, match="outputs of factory are selected by their positions"):
        ex.edited(more)


def test_a_text_that_alone_is_another_kernel_is_refused() -> None:
    factors = [3.0]

    def made() -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                block = T.alloc_fragment((32, 32), "float32")
                T.copy(A, block)
                for i, j in T.Parallel(32, 32):
                    block[i, j] = block[i, j] * factors[0]
                T.copy(block, B)

        return kernel

    ex = ttx.explore(made())
    factors[0] = 4.0
    with pytest.raises(UsageError, match=r"kernel cannot be edited: its text, executed alone, defines another kernel"):
        ex.edited(text(ex, ("(1)", "(1, 1)")))


def test_the_text_of_several_launches_is_edited_as_a_whole() -> None:
    ex = ttx.explore(two_products())
    edited = ex.edited(ex.kernel.source.text + "\n")
    assert len(edited.launches) == len(ex.launches)
    assert "edit" not in ex.missing
    launch = ex.launches[0]
    assert launch.missing["edit"] == "the text of a launch belongs to all launches of its kernel"
    with pytest.raises(UsageError, match=r"cannot be edited: the text of a launch .*\n.*ex.edited\(text\)"):
        launch.edited(ex.kernel.source.text)


@pytest.mark.parametrize("around", [("# above\n", ""), ("one = 1\n\n", "\n# below"), ("\n", "")])
def test_what_stands_around_the_function_is_of_the_text(around: tuple[str, str]) -> None:
    ex = ttx.explore(f"{GEMM}::matmul", M=128, N=128, K=128)
    wanted = text(ex).join(around)
    edited = ex.edited(wanted)
    assert edited.kernel.source.text.rstrip("\n") == wanted.rstrip("\n")
    assert edited.kernel.first_line == ex.kernel.first_line
    numbers = [line.origins[0].span.line for line in edited.kernel.source.lines]
    assert numbers == [ex.kernel.first_line + i for i in range(len(numbers))]
    # What is undone is the first kernel again.
    assert edited.edited(text(ex)).kernel is ex.kernel


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("T.copy(A, block)", "T.copy((A, block)", "T.copy(A, block)", r"'\(' was never closed"),
        ("T.copy(A, block)", "T.cpy(A, block)", "T.copy(A, block)", "T.cpy does not exist"),
        ("* factor", "* facto", "* factor", "name 'facto' is not defined"),
        ("A: T.Tensor((n, n)", "A: T.Tensor((m, n)", "A: T.Tensor", "parameter A is annotated with"),
        ("T.copy(A, block)", "T.copy(A, A[0:3])", "T.copy(A, block)", "A"),
        ("@T.prim_func", "@T.prim_fun", "@T.prim_func", "T.prim_fun does not exist"),
        ("* factor", "* factor\0", "@T.prim_func", "null bytes"),
    ],
)
def test_an_error_has_the_line_of_the_text(old: str, new: str, line: str, said: str) -> None:
    ex = ttx.explore(factory(32, 3.0))
    number = next(n for n, one in enumerate(ex.kernel.source.lines, ex.kernel.first_line) if line in one.text)
    with pytest.raises(TTExploreError, match=said) as caught:
        ex.edited(text(ex, (old, new)))
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (f"{__file__} (edited)", number)


def test_a_text_without_a_kernel_is_refused() -> None:
    ex = ttx.explore(factory(32, 3.0))
    for wrong in ("", "x = 1", "# nothing\n", "class A: pass"):
        with pytest.raises(KernelError, match="the text defines no kernel"):
            ex.edited(wrong)
    with pytest.raises(UsageError, match="the text of the kernel"):
        ex.edited(3)  # pyright: ignore[reportArgumentType]
    # What is wrong in a pass is kept with its step, as by explore.
    large = ex.edited(text(ex, ("n, n", "4096, 4096")))
    assert large.error is not None


def test_endless_python_in_a_text_is_cancelled() -> None:
    ex = ttx.explore(factory(32, 3.0))
    endless = text(ex, ("T.copy(A, block)\n", "T.copy(A, block)\n            while True:\n                x = 1\n"))
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(Cancelled):
        ex.lower_text(endless, Control(cancel))


def test_nothing_is_left_of_a_text(tmp_path: Path) -> None:
    """The file and the sources that Python keeps are as they were; a saved lowering says that it was edited."""
    before = Path(GEMM).read_bytes()
    ex = ttx.explore(f"{GEMM}::matmul_relu")
    known = set(linecache.cache)
    edited = ex.edited(text(ex, ("0.0", "1.0")))
    assert set(linecache.cache) == known
    assert Path(GEMM).read_bytes() == before
    saved = ttx.load(edited.save(tmp_path / "edited.ttx"))
    assert saved.kernel.file == f"{GEMM} (edited)"
    assert "edit" in saved.missing
    with pytest.raises(UsageError, match="lowering another text"):
        saved.edited("")
