"""The host program: it compiles, and every function of the SDK that it calls is exported by the SDK's libraries.

A mangled name holds the types of the parameters, so a wrong one is found. What it does not hold is not checked: return
types, the layout of structs, the values of enumerators and defaults.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import CORPUS
from tests.typecheck.headers import SYMBOLS_FILE
from tests.typecheck.known import keep, place, recall

DECLARATIONS = Path(__file__).parents[1] / "hostcheck"
# One process compiles the headers for all.
pytestmark = pytest.mark.xdist_group("host program")
SDK_NAMESPACES = ("2tt", "4ttsl", "4ttnn")
# Each calls something that the others do not, or leaves something out.
CASES = (
    "gemm_reload",
    "copy_bf16",
    "filled",
    "starts_with_a_row",
    "sharded_blocks",
    "sharded_height_and_width",
    "local_shards",
    "bfp8",
    "small_casts",
    "multicast_rows_and_columns",
)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def compiler(headers: Path, declarations: Path) -> list[str | Path]:
    sdk = headers / "ttnn" / "tt_metal"
    return [
        "g++", "-std=c++20", "-Wall", "-Werror", "-fmessage-length=0",
        "-I", declarations, "-isystem", sdk / "api", "-isystem", sdk / "hostdevcommon" / "api",
    ]  # fmt: skip


def includes(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("#include"))


@functools.cache
def compiled_includes(included: str, headers: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder with prelude.h, compiled once: what a text includes that has just these lines."""
    folder = tempfile.TemporaryDirectory()
    prelude = Path(folder.name) / "prelude.h"
    prelude.write_text(included, encoding="utf-8")
    run(*compiler(headers, DECLARATIONS), "-x", "c++-header", prelude, "-o", f"{prelude}.gch").check_returncode()
    return folder


def called_symbols(
    text: str, folder: Path, headers: Path, declarations: Path = DECLARATIONS, *, precompiled: bool = True
) -> set[str]:
    """The mangled names in the SDK's namespaces that main.cpp needs. Fails with the compiler's message. A text that has
    compiled before, with the same declarations, is not compiled again."""
    declared = [(file.name, file.read_text(encoding="utf-8")) for file in sorted(declarations.rglob("*.hpp"))]
    known = place(headers, __file__, [text, declared])
    if (kept := recall(known)) is not None:
        return set(kept.split())
    source, made = folder / "main.cpp", folder / "main.o"
    source.write_text(text, encoding="utf-8")
    command = compiler(headers, declarations)
    if declarations == DECLARATIONS and precompiled:
        command += ["-include", Path(compiled_includes(includes(text), headers).name) / "prelude.h"]
    compiled = run(*command, "-c", source, "-o", made)
    if compiled.returncode:
        pytest.fail(compiled.stderr, pytrace=False)
    undefined = run("nm", "--undefined-only", "--just-symbols", made)
    names = {name for name in undefined.stdout.split() if any(part in name for part in SDK_NAMESPACES)}
    assert names, undefined.stderr
    keep(known, "\n".join(sorted(names)))
    return names


def refuse_unknown(called: set[str]) -> None:
    """Fails with the signatures that no library of the SDK exports."""
    unknown = sorted(called - set(SYMBOLS_FILE.read_text(encoding="utf-8").splitlines()))
    if unknown:
        signatures = run("c++filt", *unknown).stdout.splitlines()
        pytest.fail("\n".join(f"the SDK exports no {signature}" for signature in signatures), pytrace=False)


def host_program(name: str) -> str:
    case = next(case for case in CORPUS if case.name == name)
    return ttx.explore(case.make(), options=case.options).code["host"].text


@pytest.mark.parametrize("name", CASES)
def test_every_call_is_exported(name: str, tmp_path: Path, ttnn_headers: Path) -> None:
    called = called_symbols(host_program(name), tmp_path, ttnn_headers)
    assert len(called) >= 20
    refuse_unknown(called)


def test_names_do_not_collide(tmp_path: Path, ttnn_headers: Path) -> None:
    """Tensors that are named like variables, types and functions of the host program; for the other chip."""

    @T.prim_func
    def run(
        writer: T.Tensor((64, 64), "bfloat16"), device: T.Tensor((64, 64), "bfloat16"),
        reader: T.Tensor((64, 64), "bfloat16"), Tiles: T.Tensor((64, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, 2) as (int, work_count):
            a = T.alloc_shared((32, 64), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            T.copy(writer[work_count * 32, int * 64], a)
            T.copy(device[work_count * 32, int * 64], b)
            T.copy(a, reader[work_count * 32, int * 64])
            T.copy(b, Tiles[work_count * 32, int * 64])

    text = ttx.explore(run, target="blackhole_p150").code["host"].text
    assert "device->arch() != tt::ARCH::BLACKHOLE" in text
    refuse_unknown(called_symbols(text, tmp_path, ttnn_headers))


# What stands in main.cpp, what is planted, what the compiler says.
WRONG_CALLS = [
    (
        "EnqueueMeshWorkload(device->mesh_command_queue(), workload",
        "EnqueueMeshWorkload(*device, workload",
        "'void tt::tt_metal::distributed::EnqueueMeshWorkload(",
    ),
    (
        "static_cast<uint32_t>(A_tensor->address()),",
        "A_tensor,",
        "could not convert '{A_tensor}' from '<brace-enclosed initializer list>' to 'std::initializer_list<",
    ),
    (".math_fidelity =", ".fidelity =", "'tt::tt_metal::ComputeConfig' has no non-static data member named 'fidelity'"),
]


def test_wrong_calls_are_found(tmp_path: Path, ttnn_headers: Path) -> None:
    text = planted(host_program("copy_bf16"), [(good, bad) for good, bad, _ in WRONG_CALLS])
    with pytest.raises(pytest.fail.Exception) as caught:
        called_symbols(text, tmp_path, ttnn_headers, precompiled=False)
    said = str(caught.value).replace("\u2018", "'").replace("\u2019", "'")
    assert [message for _, _, message in WRONG_CALLS if message not in said] == [], said


# What stands in the declarations, what is planted, the signature that is then missed.
WRONG_SIGNATURES = [
    ("size_t queues = 1", "int queues = 1", "MeshDevice::create_unit_mesh(int, unsigned long, unsigned long, int, "),
    ("ARCH arch() const", "ARCH arch()", "distributed::MeshDevice::arch()"),
    ("const void* source, bool", "const void* source, int", "::enqueue_write_mesh_buffer(std::shared_ptr<"),
    ("CBHandle CreateCircularBuffer(", "CBHandle CreateBuffer(", "tt::tt_metal::CreateBuffer(tt::tt_metal::Program&, "),
]


def test_wrong_signatures_are_found(tmp_path: Path, ttnn_headers: Path) -> None:
    changed = tmp_path / "hostcheck"
    shutil.copytree(DECLARATIONS, changed)
    file = changed / "tt-metalium" / "declarations.hpp"
    faults = [(good, bad) for good, bad, _ in WRONG_SIGNATURES]
    file.write_text(planted(file.read_text(encoding="utf-8"), faults), encoding="utf-8")
    text = host_program("copy_bf16").replace("CreateCircularBuffer(", "CreateBuffer(")
    called = called_symbols(text, tmp_path, ttnn_headers, changed)
    with pytest.raises(pytest.fail.Exception) as caught:
        refuse_unknown(called)
    messages = str(caught.value).splitlines()
    assert len(messages) == len(WRONG_SIGNATURES)
    for _, _, signature in WRONG_SIGNATURES:
        found = [message for message in messages if signature in message]
        assert len(found) == 1, messages
        assert found[0].startswith("the SDK exports no tt::tt_metal::")


def planted(text: str, faults: list[tuple[str, str]]) -> str:
    for good, bad in faults:
        assert text.count(good) == 1, good
        text = text.replace(good, bad)
    return text
