"""Links from emitted lines to kernel lines, against links that were made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttexplore import explore
from ttexplore.exploration import Exploration
from ttexplore.plan import KERNEL_ROLES

# Each marked line: a letter by which the table below names it.
KERNEL = """\
import ttexplore.language as T

@T.prim_func
def scaled_product(
    A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16"),
):
    with T.Kernel(2, 2) as (bx, by):                     #: kernel
        a_block = T.alloc_shared((32, 32), "bfloat16")   #: allocate a
        b_block = T.alloc_shared((32, 32), "bfloat16")   #: allocate b
        total = T.alloc_fragment((32, 32), "float32")    #: allocate total
        result = T.alloc_shared((32, 32), "bfloat16")    #: allocate result
        T.clear(total)                                   #: clear
        for k in T.serial(2):                            #: loop
            T.copy(A[by * 32, k * 32], a_block)          #: copy a
            T.copy(B[k * 32, bx * 32], b_block)          #: copy b
            T.gemm(a_block, b_block, total)              #: product
        for i, j in T.Parallel(32, 32):                  #: elements
            result[i, j] = total[i, j] * 2.0             #: scale
        T.copy(result, C[by * 32, bx * 32])              #: copy c
"""

# Kernel, a piece of one emitted line that stands only there, and the marks that the line may be linked to, of which
# it must have one. Made by hand.
LINKS = (
    ("reader", "cb_a_block = ", {"allocate a"}),
    ("reader", "cb_b_block = ", {"allocate b"}),
    ("reader", "const auto A = ", {"copy a"}),
    ("reader", "const auto B = ", {"copy b"}),
    ("reader", "get_arg_val", {"kernel"}),
    ("reader", "noc.async_read(A", {"copy a"}),
    ("reader", "noc.async_read(B", {"copy b"}),
    ("reader", "a_block_buffer.reserve_back", {"copy a"}),
    ("reader", "b_block_buffer.reserve_back", {"copy b"}),
    ("reader", "a_block_buffer.push_back", {"copy a"}),
    ("reader", "b_block_buffer.push_back", {"copy b"}),
    ("reader", "for (uint32_t k", {"loop"}),
    ("reader", "for (uint32_t item", {"kernel"}),
    ("compute", "for (uint32_t k", {"loop"}),
    ("compute", "matmul_block(", {"product"}),
    ("compute", "mul_unary_tile(", {"scale", "elements"}),
    ("compute", "a_block_buffer.wait_front", {"product"}),
    ("compute", "b_block_buffer.pop_front", {"product"}),
    ("writer", "noc.async_write(", {"copy c"}),
    ("writer", "const auto C = ", {"copy c"}),
    ("writer", "result_buffer.wait_front", {"copy c"}),
)


def explored(text: str, folder: Path) -> Exploration:
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    exploration = explore(f"{path}::scaled_product")
    assert exploration.error is None
    return exploration


def marks(text: str) -> dict[int, str]:
    """The mark of each marked line."""
    lines = enumerate(text.splitlines(), start=1)
    return {number: line.partition("#: ")[2] for number, line in lines if "#: " in line}


def linked(exploration: Exploration, role: str, piece: str) -> set[int]:
    found = [line for line in exploration.code[role].lines if piece in line.text]
    assert found, f"{role} has no {piece!r}:\n{exploration.code[role]}"
    return {origin.span.line for line in found for origin in line.origins}


@pytest.fixture
def exploration(tmp_path: Path) -> Exploration:
    return explored(KERNEL, tmp_path)


@pytest.mark.parametrize(("role", "piece", "wanted"), LINKS)
def test_lines_are_linked_as_by_hand(exploration: Exploration, role: str, piece: str, wanted: set[str]) -> None:
    names = {marks(KERNEL)[line] for line in linked(exploration, role, piece)}
    assert names
    assert names <= wanted


def test_moving_a_kernel_line_moves_its_links(exploration: Exploration, tmp_path: Path) -> None:
    lines = KERNEL.splitlines(keepends=True)
    first = next(position for position, line in enumerate(lines) if "copy a" in line)
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    moved = "# one\n# two\n# three\n" + "".join(lines)
    other = explored(moved, tmp_path)
    before, after = marks(KERNEL), marks(moved)
    assert before != after
    for role, piece, _ in LINKS:
        assert {before[line] for line in linked(exploration, role, piece)} == {
            after[line] for line in linked(other, role, piece)
        }


def test_no_line_is_linked_to_a_line_without_a_statement(exploration: Exploration) -> None:
    marked = marks(KERNEL)
    for role in KERNEL_ROLES:
        for line in exploration.code[role].lines:
            assert {origin.span.line for origin in line.origins} <= marked.keys() | {4}, line.text
