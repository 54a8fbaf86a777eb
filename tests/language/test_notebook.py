"""Kernels in notebook cells: spans say ``cell N`` and the line, never a temporary path."""

from __future__ import annotations

import linecache
import subprocess
import sys
from typing import Any

import pytest
import tvm_ffi
from tvm import tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import span_of
from ttexplore.language.load import trace

CELL = """import ttexplore.language as T

@T.prim_func
def kernel(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(2, 2) as (bx, by):
        T.copy(A[by * 32:by * 32 + 32, bx * 32], C[by * 32, bx * 32:bx * 32 + 32])
        T.copy(A[by * 32, 0], C[by * 32, 0])
"""


def run_cell(number: int, text: str) -> dict[str, Any]:
    """Runs text as IPython's bare shell does: under a name that is no file, with its lines in linecache."""
    name = f"<ipython-input-{number}-0123456789ab>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    return namespace


def test_a_cell_shows_its_number_and_line() -> None:
    with pytest.raises(KernelError) as caught:
        run_cell(7, CELL)
    assert str(caught.value.span) == "cell 7:6"
    good = CELL.replace("by * 32:by * 32 + 32, bx * 32]", "by * 32, bx * 32]").replace(
        "C[by * 32, bx * 32:bx * 32 + 32]", "C[0:32, 0:32]"
    ).replace("        T.copy(A[by * 32, 0], C[by * 32, 0])\n", "")  # fmt: skip
    traced = trace(run_cell(8, good)["kernel"])
    files: set[str] = set()
    tvm_ffi.structural_walk(
        traced.function.body, (tirx.Stmt, lambda s: files.add(str(getattr(span_of(s), "file", ""))))
    )
    assert files - {""} == {"cell 8"}
    assert (traced.file, traced.first_line) == ("cell 8", 3)
    assert traced.source.lines[0].text == "@T.prim_func"


def test_the_same_kernel_in_two_cells_is_two_kernels() -> None:
    text = CELL.replace("        T.copy(A[by * 32:by * 32 + 32, bx * 32], C[by * 32, bx * 32:bx * 32 + 32])\n", "")
    assert [trace(run_cell(number, text)["kernel"]).file for number in (1, 2)] == ["cell 1", "cell 2"]


SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.compilerop import CachingCompiler

class KernelCompiler(CachingCompiler):
    # As ipykernel names cells: a temporary path without the number.
    def get_code_name(self, raw_code, code, number):
        return f"/tmp/ipykernel_99/{abs(hash(code))}.py"

InteractiveShell.compiler_class = KernelCompiler
InteractiveShell.history_length = 0
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
shell.run_cell("import ttexplore.language as T", store_history=True)
shell.run_cell('''@T.prim_func
def first(A: T.Tensor((64, 64), "float32")):
    with T.Kernel(2) as bx:
        T.clear(A)

def factory(n):
    @T.prim_func
    def second(A: T.Tensor((n, n), "float32")):
        with T.Kernel(2) as bx:
            T.clear(A)
    return second
''', store_history=True)
shell.run_cell('''from ttexplore.language.load import trace
print(trace(first).file, trace(factory, n=32).file, trace(first).first_line)
def kernel():
    return T.prim_func(broken)
def broken(A: T.Tensor((64, 64), "float32")):
    T.gemm(A, A, None)
try:
    kernel()
except Exception as error:
    print(str(error).splitlines()[0])
''', store_history=True)
"""


def test_ipython_cells_are_named_by_their_execution_count() -> None:
    command = [sys.executable, "-c", SHELL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == [
        "cell 2 cell 2 1",
        "cell 3:6: T.gemm takes a tensor, a buffer or a region of one, not None",
    ], done.stdout + done.stderr
