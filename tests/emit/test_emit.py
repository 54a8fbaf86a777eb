"""The emitted files: the plan's schema, names, the host program, and the text as a whole."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import copy_block, gemm
from tests.corpus.explored import NAMES, explored
from ttexplore.emit import plan_json
from ttexplore.emit.schema import plan_schema, schema_text

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "schema" / "tt.plan.schema.json"


def test_published_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text() == schema_text()


@functools.cache
def validator() -> Any:
    """What checks plans; making it checks the schema."""
    # Importing it takes seconds, which all processes would wait for that run tests.
    from jsonschema.validators import validator_for

    kind = validator_for(plan_schema())
    kind.check_schema(plan_schema())
    return kind(plan_schema())


@pytest.mark.parametrize("name", NAMES)
def test_plans_fit_the_schema(name: str) -> None:
    validator().validate(json.loads(plan_json(explored(name).plan)))


def test_schema_refuses_what_is_no_plan() -> None:
    import jsonschema

    data = json.loads(plan_json(ttx.explore(copy_block()).plan))
    data["buffers"][0]["stages"] = "two"
    with pytest.raises(jsonschema.ValidationError, match="'two' is not of type 'integer'"):
        validator().validate(data)


@pytest.mark.parametrize("name", ["gemm_reload", "gemm_in_dst", "exp_fp32", "copy_bf16"])
def test_files_are_golden(name: str, golden: Callable[[str, str], None]) -> None:
    exploration = explored(name)
    for file in ("reader.cpp", "compute.cpp", "writer.cpp", "main.cpp"):
        golden(f"emit/{name}/{file}", exploration.files[file].text)


def test_names_mean_nothing() -> None:
    """Buffers that are named like C++ keywords, the SDK's names and each other's roles give the same result."""

    @T.prim_func
    def kernel(
        writer: T.Tensor((64, 64), "bfloat16"),
        noc: T.Tensor((64, 64), "bfloat16"),
        reader: T.Tensor((64, 64), "bfloat16"),
    ):
        with T.Kernel(1, 2) as (int, work_count):
            register = T.alloc_shared((32, 64), "bfloat16")
            A_out = T.alloc_shared((64, 64), "bfloat16")
            dst = T.alloc_fragment((32, 64), "float32")
            T.copy(writer[work_count * 32, int * 64], register)
            T.copy(noc, A_out)
            T.clear(dst)
            T.gemm(register, A_out, dst)
            T.copy(dst, reader[work_count * 32, int * 64])

    exploration = ttx.explore(kernel)
    assert exploration.check()
    assert exploration.run().passed


def test_host_program_names_everything_in_the_plan() -> None:
    exploration = ttx.explore(gemm())
    host = exploration.code["host"].text
    for buffer in exploration.plan.buffers:
        assert f"CircularBufferConfig({buffer.total_bytes}, " in host
    partition = exploration.plan.partition
    assert partition is not None
    for core in partition.cores:
        assert f"{{{core.x}, {core.y}}}" in host
    assert host.count("CreateKernel(") == 3


@pytest.mark.parametrize(("place", "layout"), [((-64, 0), "tile"), ((0, -64), "tile"), ((0, -32), "row")])
def test_constant_places_before_the_start_compile(place: tuple[int, int], layout: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 16 if layout == "row" else 32), "float32")
            T.copy(A[place[0], place[1]], a)
            T.copy(a, C[0, 0])

    exploration = ttx.explore(kernel, options={"layouts": {"A": {"page": layout}}})
    assert re.search(r"(page_id|offset_bytes) = static_cast<uint32_t>\(-\d+\)", exploration.code["reader"].text)
    assert exploration.run().passed
