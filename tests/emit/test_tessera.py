"""The Tessera form of kernels: with a meaning for each of its words, the text computes what the kernel does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from benchmarks.gallery import KERNELS as GALLERY_KERNELS
from tests.conftest import compare_golden
from tests.corpus.direct import from_tensor_to_tensor
from tests.corpus.launches import two_products
from tests.corpus.scans import part
from tests.corpus.sizes import any_size_gemm
from ttexplore.backends.emulator.compiler import find_compiler
from ttexplore.cli import main
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.ops.small import numpy_dtype

GALLERY = "notebooks/gallery"
KERNELS = (
    "elementwise.py::add", "gemm.py::gemm", "gemm_epilogues.py::gemm_gelu", "gemm_epilogues.py::gemm_bias_residual",
    "sums.py::row_sums", "sums.py::column_sums", "norms.py::rms_norm", "norms.py::layer_norm", "softmax.py::softmax",
    "softmax.py::online_softmax", "rope.py::rope_halves", "attention.py::full_attention",
    "attention.py::causal_attention",
)  # fmt: skip
MAIN = """
#include <cstdio>
#include <cstdlib>
#include "tessera_words.h"
%s
static void* read_file(const char* name, long bytes) {
    void* data = malloc(bytes);
    FILE* file = fopen(name, "rb");
    if (!file || fread(data, 1, bytes, file) != static_cast<size_t>(bytes)) abort();
    fclose(file);
    return data;
}
int main() {
%s
    for (int z = 0; z < %d; ++z) for (int y = 0; y < %d; ++y) for (int x = 0; x < %d; ++x) {
        blockIdx = {x, y, z};
        %s(%s);
    }
%s
}
"""


def computed(ex: ttx.Exploration, text: str, folder: Path) -> list[np.ndarray]:
    """The outputs of the text, with words that mean what tessera_words.h says."""
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    signature = re.search(rf"__global__ void {ex.kernel.name}\((.*)\) \{{", text)
    assert signature is not None
    parameters = re.findall(r"(const )?(\w+)\* (\w+)", signature[1])
    given = dict(zip([one.name for one in ex.plan.layouts if one.role != "output"], ex.inputs(), strict=True))
    reads: list[str] = []
    saves: list[str] = []
    layouts = {one.name: one for one in ex.plan.layouts}
    for _, kind, name in parameters:
        shape, dtype = layouts[name].shape, numpy_dtype(layouts[name].dtype)
        array = np.asarray(given.get(name, np.zeros(shape)), dtype)
        array.tofile(folder / f"{name}.bin")
        reads.append(f'auto {name} = static_cast<{kind}*>(read_file("{folder}/{name}.bin", {array.nbytes}));')
        if layouts[name].role != "input":
            saves.append(f'fwrite({name}, 1, {array.nbytes}, fopen("{folder}/{name}.out", "wb"));')
    sizes = {axis: int(count) for axis, count in re.findall(r"blockIdx\.([xyz]);  // (\d+) blocks?", text)}
    (folder / "main.cpp").write_text(
        MAIN % (text, "\n".join(reads), *(sizes.get(axis, 1) for axis in "zyx"), ex.kernel.name,
                ", ".join(p[2] for p in parameters), "\n".join(saves)),
    )  # fmt: skip
    made = str(folder / "made")
    command = [
        *compiler.command,
        "-std=c++20",
        "-O1",
        f"-I{Path(__file__).parent}",
        str(folder / "main.cpp"),
        "-o",
        made,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    subprocess.run([made], check=True, timeout=60)
    return [
        np.fromfile(folder / f"{one.name}.out", numpy_dtype(one.dtype)).reshape(one.shape)
        for one in ex.plan.layouts if one.role != "input"
    ]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_text_computes_what_the_kernel_does(kernel: str, tmp_path: Path) -> None:
    ex = ttx.explore(f"{GALLERY}/{kernel}")
    [file] = ex.export(tmp_path, dialect="tessera")
    assert file.name == f"{ex.kernel.name}.tessera.cpp"
    text = file.read_text()
    assert text.startswith("// Illustrative: ")
    wanted = ex.run(backend="reference").outputs
    for got, output in zip(computed(ex, text, tmp_path), wanted, strict=True):
        largest = float(np.max(np.abs(np.asarray(output, np.float64))))
        error = float(np.max(np.abs(np.asarray(got, np.float64) - np.asarray(output, np.float64))))
        assert error <= 0.01 * largest, kernel
        assert largest > 0


def test_the_text_of_a_product(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    [file] = ttx.explore(f"{GALLERY}/gemm_epilogues.py::gemm_gelu").export(tmp_path, dialect="tessera")
    golden = Path(__file__).parents[1] / "golden" / "emit" / "gemm_gelu.tessera.cpp"
    compare_golden(golden, file.read_text(), update=bool(request.config.getoption("--update-golden")))


@pytest.mark.slow
def test_most_of_the_gallery_has_words(tmp_path: Path) -> None:
    refused: dict[str, str] = {}
    for kernel in GALLERY_KERNELS:
        try:
            ttx.explore(f"{GALLERY}/{kernel}").export(tmp_path / kernel.replace("::", "_"), dialect="tessera")
        except TTExploreError as error:
            refused[kernel] = f"{error.code} {error.span}"
    for kernel, where in refused.items():
        assert re.match(rf"TTX-U028 (\S*/)?{kernel.partition('::')[0]}:\d+", where), (kernel, where)
    assert len(GALLERY_KERNELS) - len(refused) > 30, refused


def test_launches_are_written_each(tmp_path: Path) -> None:
    files = ttx.explore(two_products()).export(tmp_path, dialect="tessera")
    assert [path.parent.name for path in files] == ["launch_1", "launch_2"]


def test_what_has_no_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the Tessera form has no word for") as refused:
        ttx.explore(f"{GALLERY}/sums.py::column_sums_added").export(tmp_path, dialect="tessera")
    assert refused.value.span is not None
    assert not list(tmp_path.iterdir())
    ex = ttx.explore(f"{GALLERY}/elementwise.py::add")
    with pytest.raises(UsageError, match="there is no dialect 'tesera'"):
        ex.export(tmp_path, dialect="tesera")
    saved = ttx.load(ex.save(tmp_path / "add.ttx"))
    with pytest.raises(UsageError, match="a saved exploration has no kernel that can be written in Tessera"):
        saved.export(tmp_path, dialect="tessera")


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        (any_size_gemm, "the Tessera form has no sizes that are known only at run time"),
        (lambda: part(64), "the Tessera form has no word for scan"),
        (from_tensor_to_tensor, "the Tessera form has no word for a copy from tensor to tensor"),
    ],
)
def test_what_else_has_no_word(kernel: Callable[[], Any], what: str, tmp_path: Path) -> None:
    sizes = {"m": 32, "n": 32, "k": 32} if "sizes" in what else None
    with pytest.raises(UsageError, match=what):
        ttx.explore(kernel(), sizes=sizes).export(tmp_path, dialect="tessera")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["export", f"{GALLERY}/elementwise.py::add", "--dialect", "tessera", "-o", str(tmp_path / "out")])
    assert status == 0
    [path] = (tmp_path / "out").iterdir()
    assert str(path) in capsys.readouterr().out
