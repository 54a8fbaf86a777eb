"""Every operation of the table, with its own text, against the SDK's headers on both chips."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.op_programs import FORMATS, OUT, Format, operations_program
from tests.typecheck.lint import lint
from tests.typecheck.typecheck import Arch, typecheck


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize("form", [FORMATS[0], FORMATS[3]], ids=lambda form: form.name)
def test_operations_type_check(form: Format, arch: Arch, ttnn_headers: Path) -> None:
    text = operations_program(form).texts["compute"]
    formats: dict[int, str] = dict.fromkeys((0, 1, OUT), "Float16_b")
    diagnostics = typecheck(
        text, role="compute", arch=arch, compile_time_args=[], named={}, formats=formats,
        fp32_dest_acc=form.compute.wide, headers=ttnn_headers, remember=True,
    )  # fmt: skip
    assert diagnostics == []
    assert lint(text, arch=arch) == []
