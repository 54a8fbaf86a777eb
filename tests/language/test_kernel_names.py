"""A kernel has the name that its user knows: that of the outermost factory, else its function's own."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.launches import two_products
from ttexplore.language.tracer.kernel import autotune


def copied(n: int = 64) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n, n), "bfloat16"), B: T.Tensor((n, n), "bfloat16")):
        with T.Kernel(1):
            block = T.alloc_shared((n, n), "bfloat16")
            T.copy(A, block)
            T.copy(block, B)

    return main


@T.jit
def inner(n: int = 64) -> Any:
    return copied(n)


@T.jit(out_idx=[1])
def outer(n: int = 64) -> Any:
    return inner(n)


@autotune(configs=[{"n": 64}])
@T.jit
def tuned(n: Any = None) -> Any:
    return copied(n)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (copied, "copied"),
        (inner, "inner"),
        (outer, "outer"),
        (tuned, "tuned"),
        (copied(), "main"),
        (inner(64), "inner"),
    ],
)
def test_the_name_is_that_of_the_outermost_factory(kernel: Any, name: str) -> None:
    ex = ttx.explore(kernel)
    assert (ex.kernel.name, ex.data["kernel"], repr(ex).split()[2]) == (name, name, name)
    assert ex.kernel.function.attrs["global_symbol"] == name
    for role in ("reader", "writer"):
        assert ex.code[role].text.startswith(f"// {role} of {name} for ")
    # What stands in the source is what its author wrote.
    assert "def main(" in ex.kernel.source.text


def test_an_edited_kernel_and_another_lowering_keep_the_name() -> None:
    ex = ttx.explore(outer)
    edited = ex.edited(ex.kernel.source.text.replace("T.copy(block, B)", "T.copy(block, B)  # done"))
    assert (edited.kernel.name, edited.code["writer"].text.split()[3]) == ("outer", "outer")
    assert (edited.fork(stages=1).kernel.name, edited.kernel.outputs) == ("outer", ex.kernel.outputs)


def test_names_of_launches_come_from_that_of_the_kernel() -> None:
    ex = ttx.explore(two_products)
    names = [launch.kernel.name for launch in ex.launches]
    assert names == [f"{ex.kernel.name}_{number}" for number in range(1, len(names) + 1)]
