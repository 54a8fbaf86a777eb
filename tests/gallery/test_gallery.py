"""The gallery: each kernel of notebooks/gallery against its formula in NumPy, its record, its picture, and the page.

`make gallery` records them (`benchmarks/gallery.py`); what the simulated chips did is not run here, but a record tells
whether the program has changed since.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import ttexplore as ttx
from benchmarks import gallery as recording
from benchmarks.gallery import GALLERY, PAGE, PICTURES, Recorded, picture_file, recorded, wanted_of, with_chips, write
from tests.changed_lines import check_changed_lines
from ttexplore.course.gallery import FORMULA, RECORDS, page, read_gallery
from ttexplore.exploration import Exploration

# Of the largest element of an output. What a kernel holds in bfloat16 has 8 bits of mantissa, in float8 4; integers are
# exact.
BOUNDS = {"bfloat16": 1e-2, "float32": 5e-3, "float8_e4m3fn": 4e-2, "int32": 0.0}

KERNELS = [(GALLERY / kernel.partition("::")[0], kernel.partition("::")[2]) for kernel in recording.KERNELS]
RECORD = "the record is out of date; run: make gallery"


@functools.cache
def now(kernel: str) -> Recorded:
    return recorded(kernel)


@functools.lru_cache(maxsize=4)
def lowered(kernel: str) -> Exploration:
    return ttx.explore(f"{GALLERY / kernel}")


def records() -> dict[str, Any]:
    return json.loads((GALLERY / RECORDS).read_text())["kernels"]


@pytest.mark.parametrize("kernel", recording.KERNELS)
def test_kernel(kernel: str, request: pytest.FixtureRequest) -> None:
    found = now(kernel)
    for error, dtype in zip(found.errors, found.dtypes, strict=True):
        assert error <= BOUNDS[dtype]
    if not request.config.getoption("--update-golden"):
        before = records()[kernel]
        assert before == with_chips(kernel, found.record, before, run=False, again=False), RECORD
        assert picture_file(kernel).read_text() == found.picture, RECORD


@pytest.mark.parametrize("kernel", recording.KERNELS)
def test_kernel_in_float64(kernel: str) -> None:
    """Without rounding, a kernel is its formula. What is left are constants of the kernels in float32, such as log2(e),
    and a small number below a root."""
    explored = lowered(kernel)
    arrays = explored.inputs()
    for out, one in zip(explored.reference(list(arrays), in_float64=True), wanted_of(kernel, arrays), strict=True):
        assert np.abs(out - one).max() <= 1e-7 * np.abs(one).max()


@pytest.mark.parametrize("kernel", recording.KERNELS)
def test_each_changed_line_has_a_rule_and_a_source(kernel: str) -> None:
    for launch in lowered(kernel).launches:
        for step in launch.steps:
            for leaf in step.leaves:
                check_changed_lines(leaf.record)


def test_page(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        write({kernel: now(kernel) for kernel in recording.KERNELS})
    assert PAGE.read_text() == page(read_gallery(GALLERY)), RECORD


def test_pictures() -> None:
    """Small drawings, one for each kernel."""
    files = sorted(PICTURES.iterdir())
    assert files == sorted(map(picture_file, recording.KERNELS))
    assert sum(len(file.read_bytes()) for file in files) < 300_000
    for file in files:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_the_picture_of_a_product() -> None:
    """The last block of C was made of the last rows of A and the last columns of B."""
    blocks = re.findall(r'<path d="([^"]*)" fill="#', picture_file("gemm.py::gemm").read_text())
    a, b, c = (re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", one) for one in blocks)
    widths = [[float(width) for *_, width in one] for one in (a, b, c)]
    assert [len(one) for one in widths] == [2, 4, 2]
    assert widths == [[60.0] * 2, [30.0] * 4, [30.0] * 2]


def test_every_kernel_is_in_one_place() -> None:
    """All that have a formula, with names that tell them apart."""
    texts = {file.name: file.read_text() for file in GALLERY.glob("*.py")}
    found = [
        f"{file}::{name}"
        for file, text in texts.items()
        for name in re.findall(rf"^def (\w+){FORMULA}\(", text, re.MULTILINE)
        if re.search(rf"^def {name}\(", text, re.MULTILINE)
    ]
    assert sorted(found) == sorted(recording.KERNELS)
    assert len({kernel.partition("::")[2] for kernel in found}) == len(found)
    for file, text in texts.items():
        defined = re.findall(r"^def (\w+)\(.*(?:block|chunk|dtype)\w*=", text, re.MULTILINE)
        assert {f"{file}::{name}" for name in defined if not name.endswith(FORMULA)} <= set(found)


def test_a_refused_kernel_has_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work.py").write_text(
        "import ttexplore.language as T\n\n\ndef persistent():\n"
        '    @T.prim_func\n    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):\n'
        "        with T.Kernel(1):\n"
        '            a = T.alloc_shared((4096, 4096), "float32")\n'
        "            T.copy(A, a[0:64, 0:64])\n            T.copy(a[0:64, 0:64], B)\n\n    return main\n"
    )
    monkeypatch.setattr(recording, "GALLERY", tmp_path)
    refused = recorded("work.py::persistent").record["refused"]
    assert refused["code"].startswith("TTX-")
    assert refused["hint"]
    (tmp_path / RECORDS).write_text(
        json.dumps({"versions": {}, "kernels": {"work.py::persistent": {"refused": refused}}})
    )
    gallery = read_gallery(tmp_path)
    assert gallery.entry("persistent").steps == refused["code"]
    assert f"{refused['message']}; {refused['hint']}" in page(gallery)


def test_a_changed_program_is_told_from_the_one_that_ran() -> None:
    kernel = "elementwise.py::add"
    ran = {"wormhole_n150": {"result": "equal", "options": {}, "program": "0" * 12}}
    status = with_chips(kernel, {}, {"chips": ran}, run=False, again=False)["chips"]["wormhole_n150"]
    assert status["program"] == "0" * 12
    assert re.fullmatch("[0-9a-f]{12}", status["now"])
    assert status["now"] != status["program"]
