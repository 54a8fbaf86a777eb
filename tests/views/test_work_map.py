"""The map of work items: each item once, in its place, with its core; and the pictures of docs/schedules.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ttexplore.language as T
from tests.conftest import compare_golden
from ttexplore import explore
from ttexplore.views.figures.work_map import work_map_svg

IMAGES = Path(__file__).parents[2] / "docs" / "images"
POLICIES = ("contiguous", "strided", "rectangular", "block_linear(2)", "z_order")


def copy_kernel(rows: int, columns: int) -> object:
    """A kernel with one work item for each tile of a matrix of `rows` by `columns` tiles."""

    @T.prim_func
    def copy(A: T.Tensor((32 * rows, 32 * columns), "bfloat16"), B: T.Tensor((32 * rows, 32 * columns), "bfloat16")):
        with T.Kernel(columns, rows) as (bx, by):
            block = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], block)
            T.copy(block, B[by * 32, bx * 32])

    return copy


def map_of(policy: str, **options: object) -> tuple[str, dict[int, tuple[int, int]]]:
    """The drawing, and the core of each item as the plan has it."""
    partition = explore(copy_kernel(5, 7), options={"policy": policy, "cores": (4, 2), **options}).plan.partition
    assert partition is not None
    return work_map_svg(partition), {item: (c.x, c.y) for c in partition.cores for item in partition.items_of(c)}


@pytest.mark.parametrize("policy", POLICIES)
def test_each_item_is_drawn_once_with_its_core(policy: str) -> None:
    drawing, cores = map_of(policy)
    drawn = re.findall(r"<title>item (\d+), block \(\d+, \d+, \d+\): core \((\d+), (\d+)\)", drawing)
    assert len(drawn) == len(cores) == 35
    assert {int(item): (int(x), int(y)) for item, x, y in drawn} == cores


def test_blocks_stand_where_the_grid_has_them() -> None:
    drawing, _ = map_of("strided")
    places = re.findall(r"item \d+, block \((\d+), (\d+), 0\).*?d=\"M(\d+) (\d+)h", drawing)
    assert {(int(left) - 30, int(top) - 62) for _, _, left, top in places} == {
        (34 * int(x), 34 * int(y)) for x, y, _, _ in places
    }


def test_what_is_not_drawn_is_counted() -> None:
    partition = explore(copy_kernel(80, 80)).plan.partition
    assert partition is not None
    drawing = work_map_svg(partition)
    assert drawing.count("<g data-core") == 51 * 80
    assert f"{6400 - 51 * 80:,} more items not drawn" in drawing


@pytest.mark.parametrize("policy", POLICIES)
def test_pictures_of_the_documentation(policy: str, request: pytest.FixtureRequest) -> None:
    name = re.sub(r"\W", "", policy)
    compare_golden(
        IMAGES / f"policy_{name}.svg", map_of(policy)[0], update=bool(request.config.getoption("--update-golden"))
    )
