"""The type check itself: good kernels pass on both chips, each planted error is found at its line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.typecheck import known
from tests.typecheck.lint import lint
from tests.typecheck.typecheck import Arch, Role, typecheck

KERNELS_FOLDER = Path(__file__).parent / "kernels"
FORMATS = {0: "Float16_b", 1: "Float16_b", 2: "Float16_b", 16: "Float16_b", 24: "Float32"}
COMPILE_TIME_ARGS: dict[Role, list[int]] = {"reader": [4, 2, 2048], "compute": [8], "writer": [4, 2, 2048]}
ARCHS: tuple[Arch, ...] = ("wormhole_b0", "blackhole")


def kernel(role: Role) -> str:
    return (KERNELS_FOLDER / f"{role}.cpp").read_text(encoding="utf-8")


def check(text: str, role: Role, arch: Arch, headers: Path) -> list[str]:
    named = {"stride_pages": 16} if role == "reader" else {}
    return typecheck(
        text, role=role, arch=arch, compile_time_args=COMPILE_TIME_ARGS[role], named=named, formats=FORMATS,
        fp32_dest_acc=True, headers=headers,
    )  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("role", ["reader", "compute", "writer"])
def test_good_kernels_pass(role: Role, arch: Arch, ttnn_headers: Path) -> None:
    assert check(kernel(role), role, arch, ttnn_headers) == []
    assert lint(kernel(role), arch=arch) == []


# (kernel, what stands there, what is planted, how the diagnostic starts after the kernel's line)
PLANTED: list[tuple[Role, str, str, str]] = [
    ("compute", "matmul_block(0, 1, 0, 0, 0, 0, 1, 1, 1)", "matmul_tiles(0, 1, 0, 0, 0, 0)",
     "error: too many arguments to function"),
    ("compute", "matmul_block_init(0, 1, 0, 1, 1, 1);\n    for", "mm_block_init(0, 1, 24);\n    for",
     "error: 'mm_block_init' was not declared"),
    ("compute", "copy_init(24)", "copy_tile_init(24)", "warning: 'void ckernel::copy_tile_init(uint32_t"),
    ("compute", "pack_tile(0, 16)", "pack_tile(0)", "error: no matching function for call to 'pack_tile(int)'"),
    ("compute", "out.push_back(1)", "out.push(1)", "error: 'class DataflowBuffer' has no member named 'push'"),
    ("compute", "SrcOrder::Reverse", "SrcOrder::Backward", "error: 'Backward' is not a member of"),
    ("compute", "get_compile_time_arg_val(0)", "get_compile_time_arg_val(3)", "error: "),
    ("compute", "relu_tile(0);", "relu_tile(0)", "error: expected ';'"),
    ("reader", ".page_id =", ".page =", "error: "),
    ("reader", 'arg_val("stride_pages")', 'arg_val("stride")', "error: "),
    ("reader", "TensorAccessorArgs<1>()", "TensorAccessorArgs<7>()", "error: "),
    ("writer", "noc.async_writes_flushed()", "noc.writes_flushed()", "error: 'class Noc' has no member named 'writes_"),
    ("writer", "api/tensor/noc_traits.h", "api/tensor/traits.h", "error: api/tensor/traits.h: No such file"),
]  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("role", "good", "bad", "expected"), PLANTED, ids=[planted[2].strip() for planted in PLANTED])
def test_planted_error_is_reported(
    role: Role, good: str, bad: str, expected: str, arch: Arch, ttnn_headers: Path
) -> None:
    text = kernel(role)
    assert text.count(good) == 1
    line = text[: text.index(good)].count("\n") + 1
    diagnostics = check(text.replace(good, bad), role, arch, ttnn_headers)
    places = [f"{role}.cpp:{number}: " for number in (line, line + 1)]
    plain = [diagnostic.replace("\u2018", "'").replace("\u2019", "'") for diagnostic in diagnostics]
    assert any(diagnostic.startswith(place + expected) for diagnostic in plain for place in places), plain


def test_what_was_clean_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ttnn_headers: Path
) -> None:
    """What differs in anything that the compiler is given, or was not clean, is compiled."""
    monkeypatch.setattr(known, "KNOWN_FOLDER", tmp_path / "checked")
    text = kernel("writer")

    def found(text: str, arch: Arch = "wormhole_b0", arguments: tuple[int, ...] = (4, 2, 2048)) -> list[str]:
        return typecheck(
            text, role="writer", arch=arch, compile_time_args=arguments, formats=FORMATS, headers=ttnn_headers,
            remember=True,
        )  # fmt: skip

    wrong = text.replace("noc.async_writes_flushed()", "noc.writes_flushed()")
    assert found(text) == []
    assert found(wrong) == found(wrong) != []

    def compiled(*_: object, **__: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(subprocess, "run", compiled)
    assert found(text) == []
    for other in (lambda: found(wrong), lambda: found(text + "\n"), lambda: found(text, "blackhole"),
                  lambda: found(text, arguments=(4, 2, 1088))):  # fmt: skip
        with pytest.raises(AssertionError, match="compiled"):
            other()
