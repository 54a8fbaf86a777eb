"""The gallery: each kernel of notebooks/gallery against its formula in NumPy, and docs/gallery.md, the page of all.

A kernel `name` has its formula beside it, as `name_reference`. `make gallery` writes the page.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from tests.conftest import compare_golden
from ttexplore.language.load import load_module

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
SUFFIX = "_reference"
# Of the largest element of an output. What a kernel holds in bfloat16 has 8 bits of mantissa; integers are exact.
BOUNDS = {"bfloat16": 1e-2, "float32": 5e-3, "float8_e4m3fn": 4e-2, "int32": 0.0}

FILES = sorted(FOLDER.glob("*.py"))


@functools.cache
def module(file: Path) -> Any:
    return load_module(file)


def kernels(file: Path) -> list[str]:
    """The kernels of a file that have a formula, in its order."""
    names = re.findall(rf"^def (\w+){SUFFIX}\(", file.read_text(), re.MULTILINE)
    return [name for name in names if re.search(rf"^def {name}\(", file.read_text(), re.MULTILINE)]


KERNELS = [(file, name) for file in FILES for name in kernels(file)]


@dataclass(frozen=True)
class Row:
    """A kernel on the page: the largest error of each output, as a share of its largest element, and how many tiles,
    parts of tiles and single elements one run moves between DRAM and the cores."""

    name: str
    inputs: str
    errors: tuple[float, ...]
    bounds: tuple[float, ...]
    tiles: int
    parts: int
    elements: int

    def __str__(self) -> str:
        errors = ", ".join(f"{error:.0e}" if error else "0" for error in self.errors)
        return f"| `{self.name}` | {self.inputs} | {errors} | {self.tiles} | {self.parts} | {self.elements} |"


@functools.cache
def row_of(file: Path, name: str) -> Row:
    """Lower, check every step, emulate, and compare with the formula."""
    explored = ttx.explore(f"{file}::{name}")
    if explored.error is not None:
        raise explored.error
    checked = explored.check()
    assert checked.ok, str(checked)
    tensors = explored._tensors(("input", "inout"))
    arrays = explored.inputs()
    ran = explored.run(list(arrays), backend="emulator")
    formula: Callable[..., Any] = vars(module(file))[name + SUFFIX]
    found = formula(*(array.astype(np.float64) for array in arrays))
    wanted: tuple[NDArray[Any], ...] = found if isinstance(found, tuple) else (found,)
    outputs = explored._tensors(("output", "inout"))
    assert [out.shape for out in ran.outputs] == [one.shape for one in wanted]
    errors = tuple(
        float(np.abs(out.astype(np.float64) - one).max() / np.abs(one).max())
        for out, one in zip(ran.outputs, wanted, strict=True)
    )
    moved = module(FOLDER.parent / "beside_numpy.py").transfers(explored, ran)
    # What moves element by element stands in the plan, and is little.
    assert not moved["elements"] or any("element" in note for note in explored.plan.notes), name
    assert moved["elements"] < moved["tiles"], name
    shapes = ", ".join("x".join(map(str, tensor.shape)) for tensor in tensors)
    bounds = tuple(BOUNDS[tensor.dtype] for tensor in outputs)
    return Row(name, shapes, errors, bounds, moved["tiles"], moved["parts of tiles"], moved["elements"])


def page() -> str:
    parts = [
        "# Gallery",
        "",
        "Kernels of the kinds that people port, each with its formula in NumPy beside it, in",
        "[notebooks/gallery](../notebooks/gallery), lowered as they are. Every step gives the result of the kernel,",
        "and the emulated program that of the formula in float64. The error is the largest one of each output, as a",
        "share of its largest element. Tiles, parts of tiles (rows of 16 elements and more) and single elements are",
        "those that one run on the emulator moves between DRAM and the cores. Single are only elements that decide",
        "something, and numbers that stand alone, such as the sink of a head; the plan names each of them.",
        "Notebooks [08](../notebooks/08_reductions_and_softmax.ipynb) and "
        "[12](../notebooks/12_port_flash_attention.ipynb) walk",
        "through them; `make gallery` writes this page.",
    ]
    for file in FILES:
        parts += ["", f"## {file.name}", "", " ".join((module(file).__doc__ or "").split()), ""]
        parts += ["| Kernel | Inputs | Error | Tiles | Parts | Elements |", "|---|---|---|---|---|---|"]
        parts += [str(row_of(file, name)) for name in kernels(file)]
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize(("file", "name"), KERNELS, ids=lambda one: one if isinstance(one, str) else one.stem)
def test_kernel(file: Path, name: str, request: pytest.FixtureRequest) -> None:
    row = row_of(file, name)
    assert all(error <= bound for error, bound in zip(row.errors, row.bounds, strict=True)), row
    if not request.config.getoption("--update-golden"):
        assert str(row) in PAGE.read_text().splitlines(), "the page is out of date; run: make gallery"


@pytest.mark.parametrize(("file", "name"), KERNELS, ids=lambda one: one if isinstance(one, str) else one.stem)
def test_kernel_in_float64(file: Path, name: str) -> None:
    """Without rounding, a kernel is its formula. What is left are constants of the kernels in float32, such as log2(e),
    and a small number below a root."""
    explored = ttx.explore(f"{file}::{name}")
    arrays = explored.inputs()
    formula: Callable[..., Any] = vars(module(file))[name + SUFFIX]
    found = formula(*(array.astype(np.float64) for array in arrays))
    wanted = found if isinstance(found, tuple) else (found,)
    for out, one in zip(explored.reference(list(arrays), in_float64=True), wanted, strict=True):
        assert np.abs(out - one).max() <= 1e-7 * np.abs(one).max()


def test_page(request: pytest.FixtureRequest) -> None:
    """The page has every kernel; the figures are compared by the tests of the kernels."""
    if request.config.getoption("--update-golden"):
        compare_golden(PAGE, page(), update=True)
    listed = re.findall(r"^\| `(\w+)`", PAGE.read_text(), re.MULTILINE)
    assert listed == [name for _, name in KERNELS]


def test_every_kernel_has_a_formula() -> None:
    for file in FILES:
        defined = set(re.findall(r"^def (\w+)\(.*(?:block|chunk|dtype)\w*=", file.read_text(), re.MULTILINE))
        assert {name for name in defined if not name.endswith(SUFFIX)} <= set(kernels(file)), file.name
