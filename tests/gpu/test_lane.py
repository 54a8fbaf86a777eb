"""GPU lanes without TileLang: recorded ones, what is sent, and every way in which its process can fail."""

from __future__ import annotations

import copy
import json
import lzma
import math
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from benchmarks.gpu_lanes import KERNELS, TARGETS
from tests.gpu.fakes import FAILED, answering, fake_environment
from ttexplore.control import FREE
from ttexplore.errors import BackendError, Cancelled, UsageError
from ttexplore.exploration import Exploration
from ttexplore.gpu import ptx
from ttexplore.gpu.lane import ARCHITECTURES, GpuLane, read_answer, request_for
from ttexplore.gpu.process import ask
from ttexplore.gpu.ptx import Compiled, Resources, compile_ptx, read_resources
from ttexplore.gpu.recorded import recorded, request_digest, write_recording
from ttexplore.language.portable import portable

NONE = Path("nowhere")
# For these, TileLang finds no layout that suits both products: the scores of one are an operand of the other.
FAILING = {("full_attention", "sm_80"), ("causal_attention", "sm_80"), ("causal_attention", "sm_90a")}


def scaled(factor: object = 2.0, rows: int = 64) -> Any:
    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((rows, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(rows, 64):
                a[i, j] = a[i, j] * factor
            T.copy(a, B)

    return main


@pytest.fixture(scope="module")
def small() -> Exploration:
    return ttx.explore(scaled())


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    reference, arguments = KERNELS["matmul"]
    return ttx.explore(reference, **arguments)


@pytest.fixture(scope="module")
def lane(gemm: Exploration) -> GpuLane:
    return gemm.gpu(environment=NONE)


def line_of(explored: Exploration, text: str) -> int:
    lines = [line.text for line in explored.kernel.source.lines]
    return explored.kernel.first_line + next(number for number, line in enumerate(lines) if text in line)


# Recorded lanes


@pytest.mark.parametrize("name", KERNELS)
def test_every_recording_is_found_and_whole(name: str) -> None:
    reference, arguments = KERNELS[name]
    explored = ttx.explore(reference, **arguments)
    lanes = [explored.gpu(target, environment=NONE) for target in TARGETS]
    for target, one in zip(TARGETS, lanes, strict=True):
        assert (one.arch, one.versions["tilelang"], one.notes) == (target, "0.1.15", ())
        assert "it is not set up" in one.recorded
        names = [step.name for step in one.steps]
        assert {"MaterializeKernelLaunch", "LayoutInference"} <= set(names)
        # Each pass that is not inside of another one begins with what the one before it left.
        outer = [step.record for step in one.steps if "(inside of" not in step.summary]
        chain = [step for step in outer if step.name not in ("Filter", "LowerIntrin")]
        before = next(number for number, step in enumerate(chain) if step.name == "BindTarget")
        stop = next((n for n, step in enumerate(chain) if step.stage == "Code generation"), len(chain))
        for first, second in zip(chain[before:stop], chain[before + 1 : stop], strict=False):
            assert first.after.text == second.before.text, (first.name, second.name)
        if one.error is None:
            assert names[-1] == "codegen"
            assert "__global__" in one.code
            assert one.linked_share > 0.5
    assert {(name, one.arch) for one in lanes if one.error is not None} == {one for one in FAILING if one[0] == name}


def test_lines_of_cuda_are_those_of_the_kernel(gemm: Exploration, lane: GpuLane) -> None:
    """Checked by what the lines do, which the recording's own links say nothing of."""
    found: dict[str, set[int]] = {}
    for line in lane.code.lines:
        for what in ("tl::tma_load(A_desc", "tl::tma_load(B_desc", "wgmma_ss", "__float22bfloat162_rn"):
            if what in line.text:
                found.setdefault(what, set()).update(origin.span.line for origin in line.origins)
    assert found == {
        "tl::tma_load(A_desc": {line_of(gemm, "T.copy(A[")},
        "tl::tma_load(B_desc": {line_of(gemm, "T.copy(B[")},
        "wgmma_ss": {line_of(gemm, "T.gemm(")},
        "__float22bfloat162_rn": {line_of(gemm, "T.copy(C_local, C[")},
    }
    assert {line.origins[0].span.file for line in lane.code.lines if line.origins} == {"notebooks/kernels/gemm.py"}


def test_lines_of_the_first_program_are_exact(gemm: Exploration, lane: GpuLane) -> None:
    first = lane.steps[0].record.before
    line = next(line for line in first.lines if "T.gemm(" in line.text)
    assert [(origin.span.line, origin.kind) for origin in line.origins] == [(line_of(gemm, "T.gemm("), "exact")]
    allocation = next(line for line in first.lines if "A_shared = " in line.text)
    assert [(o.span.line, o.kind) for o in allocation.origins] == [(line_of(gemm, "with T.Kernel("), "inferred")]


def test_steps_have_names_letters_and_differences(lane: GpuLane) -> None:
    step = lane.steps["LowerTileOp"]
    assert step is not None
    assert step.letter == lane.steps[step.letter].letter
    assert (step.stage, step.record.changed_ir, step.seconds > 0) == ("LowerAndLegalize", True, True)
    assert "wgmma" in str(step.diff())
    inner = next(one for one in lane.steps if one.name == "LetInline")
    assert inner.summary.startswith("(inside of LowerTileOp) ")
    with pytest.raises(UsageError, match="there is no step 'Lower'"):
        lane.steps["Lower"]


def test_a_lane_is_text_and_html(lane: GpuLane) -> None:
    assert repr(lane) == "<GPU lane of matmul for sm_90a: 86 passes, 39 change the program>"
    text, html = str(lane), lane._repr_html_()
    for part in ("LowerTileOp", "sm_90a", "tilelang 0.1.15, tvm 0.25.dev0", "kernel.cu", "recorded: there is no GPU"):
        assert part in text, part
        assert part in html, part
    assert "% of the generated lines are linked" in text
    assert len(html.encode()) < 130_000


def test_hip_is_a_lane_of_its_own(gemm: Exploration) -> None:
    hip = gemm.gpu("gfx942", environment=NONE)
    assert "hip_runtime.h" in hip.code
    assert "kernel.hip" in hip.trace.files
    with pytest.raises(UsageError, match="gfx942 has no PTX"):
        hip.compile()


def test_a_recording_is_for_its_kernel_and_arguments_only(gemm: Exploration, tmp_path: Path) -> None:
    other = ttx.explore(KERNELS["matmul"][0], M=256, N=256, K=512)
    with pytest.raises(BackendError, match="there is no GPU environment") as caught:
        other.gpu(environment=tmp_path)
    assert (caught.value.code, caught.value.hint) == ("TTX-B040", f"ttexplore setup gpu --folder {tmp_path}")
    with pytest.raises(BackendError, match="there is no GPU environment"):
        gemm.gpu("sm_89", environment=tmp_path)
    # The place of the text does not matter, the text does.
    text = gemm.kernel.source.text
    edited = gemm.edited(text.replace("num_stages=2", "num_stages=3"))
    with pytest.raises(BackendError, match="it is not set up"):
        edited.gpu(environment=tmp_path)


def test_recordings_are_replaced_by_name(tmp_path: Path) -> None:
    first, second = {"texts": [1]}, {"texts": [2]}
    write_recording("one-sm_80", first, {"a": 1}, tmp_path)
    write_recording("one-sm_80", second, {"a": 2}, tmp_path)
    assert (recorded(first, tmp_path), recorded(second, tmp_path)) == (None, {"a": 2})
    assert request_digest(first) != request_digest(second)


# What is sent


def test_what_a_text_names_is_sent(small: Exploration) -> None:
    sent = portable(small.kernel)
    names = sent.texts[0]["names"]
    assert names == {"T": {"language": ""}, "rows": {"value": 64}, "factor": {"value": 2.0}}
    assert (sent.arguments, len(sent.texts), sent.texts[0]["name"]) == ({}, 1, "main")
    assert sent.places[0].span(1).line == small.kernel.first_line
    json.dumps(sent.texts, allow_nan=False)


def test_functions_macros_sizes_and_containers_are_sent() -> None:
    n = T.dynamic("n")
    shape, kind = (n, 64), T.float32

    def twice(x: Any) -> Any:
        return x * factors["two"]

    @T.macro
    def put(a: Any, b: Any):
        T.copy(a, b)

    factors = {"two": 2, "others": [1, -math.inf]}

    @T.prim_func
    def main(A: T.Tensor(shape, kind), B: T.Tensor(shape, kind)):
        with T.Kernel(T.ceildiv(n, 64)) as bx:
            a = T.alloc_shared((64, 64), kind)
            put(A[bx * 64, 0], a)
            for i, j in T.Parallel(64, 64):
                a[i, j] = twice(a[i, j])
            put(a, B[bx * 64, 0])

    sent = portable(ttx.explore(main).kernel)
    names = sent.texts[0]["names"]
    assert names["shape"] == {"tuple": [{"size": "n", "dtype": "int32"}, {"value": 64}]}
    assert names["kind"] == {"dtype": "float32"}
    assert {sent.texts[names[one]["function"]]["name"] for one in ("twice", "put")} == {"twice", "put"}
    other = sent.texts[names["twice"]["function"]]
    pairs = dict((key["value"], value) for key, value in other["names"]["factors"]["dict"])
    assert other["names"]["Any"] == {"module": "typing", "member": "Any"}
    assert pairs == {"two": {"value": 2}, "others": {"list": [{"value": 1}, {"number": "-inf"}]}}
    json.dumps(sent.texts, allow_nan=False)


def test_a_value_that_is_no_plain_data_is_named_with_its_line() -> None:
    class Sizes:
        rows = 64

    sizes = Sizes()

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((sizes.rows, 64), "float32")
            T.copy(A, a)
            T.copy(a, B)

    explored = ttx.explore(main)
    with pytest.raises(BackendError, match=r"sizes is .*Sizes object.*, which cannot be sent to TileLang") as caught:
        explored.gpu()
    assert caught.value.code == "TTX-B042"
    assert caught.value.span is not None
    assert caught.value.span.line == line_of(explored, "sizes.rows")


def test_one_launch_cannot_be_sent_alone() -> None:
    def both() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1) as _:
                a = T.alloc_shared((64, 64), "float32")
                T.copy(A, a)
                T.copy(a, B)
            with T.Kernel(1) as _:
                b = T.alloc_shared((64, 64), "float32")
                T.copy(B, b)
                T.copy(b, C)

        return main

    launches = ttx.explore(both())
    assert len(portable(launches.kernel).texts) == 1
    with pytest.raises(UsageError, match="cannot be lowered for a GPU alone") as caught:
        launches.launches[0].gpu()
    assert caught.value.hint == "use ex.gpu() of the whole"


# The process


def test_wrong_arguments(small: Exploration) -> None:
    with pytest.raises(UsageError, match="there is no architecture 'sm_9'") as caught:
        small.gpu("sm_9")
    assert all(arch in caught.value.hint for arch in ARCHITECTURES)
    with pytest.raises(UsageError, match="time_limit_seconds is -1"):
        small.gpu(time_limit_seconds=-1)


def test_another_version_is_told(small: Exploration, tmp_path: Path) -> None:
    fake_environment(tmp_path, "exit 1", version="0.1.12")
    with pytest.raises(BackendError) as caught:
        small.gpu(environment=tmp_path)
    assert caught.value.message == (
        f"the GPU environment in {tmp_path} is broken: TileLang 0.1.12 is installed, 0.1.15 is required"
    )


def test_missing_parts_and_a_damaged_record_are_told(small: Exploration, tmp_path: Path) -> None:
    def message() -> str:
        with pytest.raises(BackendError) as caught:
            small.gpu(environment=tmp_path)
        assert caught.value.code == "TTX-B040"
        return caught.value.message

    made = fake_environment(tmp_path, "exit 1")
    (made.package_folder / "__init__.py").unlink()
    assert f"TileLang is missing from {made.package_folder}" in message()
    made.python.unlink()
    assert f"its Python, {made.python}, is missing" in message()
    (tmp_path / "environment.json").write_text("{}")
    assert "environment.json cannot be read: 'python'" in message()
    (tmp_path / "environment.json").unlink()
    assert message() == f"there is no GPU environment in {tmp_path}: its set-up did not finish"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo out of luck >&2; kill -SEGV $$", "TileLang's process was ended by signal SIGSEGV: out of luck"),
        ("echo one >&2; echo two >&2; exit 3", "TileLang's process ended with exit status 3: one | two"),
        ("echo not json", "TileLang's process gave no answer"),
        ("echo '[1]'", "TileLang's process gave no answer"),
        ("true", "TileLang's process gave no answer"),
    ],
)
def test_a_crash_is_an_error(small: Exploration, tmp_path: Path, script: str, message: str) -> None:
    fake_environment(tmp_path, script)
    with pytest.raises(BackendError) as caught:
        small.gpu(environment=tmp_path)
    assert (caught.value.code, caught.value.message) == ("TTX-B041", message)


def test_a_python_that_does_not_start(small: Exploration, tmp_path: Path) -> None:
    fake_environment(tmp_path, "").python.chmod(0o644)
    with pytest.raises(BackendError, match="python does not start: Permission denied"):
        small.gpu(environment=tmp_path)


def test_an_answer_of_another_form_is_an_error(small: Exploration, tmp_path: Path) -> None:
    answering(tmp_path, {"versions": {}})
    with pytest.raises(BackendError, match="answer of TileLang's process cannot be read: KeyError"):
        small.gpu(environment=tmp_path)


def test_the_time_limit_ends_the_process(small: Exploration, tmp_path: Path) -> None:
    fake_environment(tmp_path, "sleep 600 & echo $! > " + str(tmp_path / "child") + "; wait")
    start = time.monotonic()
    with pytest.raises(BackendError, match="TileLang did not end within 2 seconds") as caught:
        small.gpu(environment=tmp_path, time_limit_seconds=2)
    assert (caught.value.code, time.monotonic() - start < 300) == ("TTX-B003", True)
    assert caught.value.hint == "raise the limit: ex.gpu(time_limit_seconds=600)"
    process = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _runs(process):
        time.sleep(0.05)
    assert not _runs(process)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_cancelling_ends_the_process(small: Exploration, tmp_path: Path) -> None:
    fake_environment(tmp_path, "sleep 600")
    cancel, told = threading.Event(), list[str]()
    threading.Timer(0.5, cancel.set).start()
    start = time.monotonic()
    with pytest.raises(Cancelled):
        small.gpu(environment=tmp_path, cancel=cancel, progress=told.append)
    assert time.monotonic() - start < 300
    assert told == ["TileLang lowers main for sm_90a"]


def test_the_request_is_plain_json(small: Exploration, tmp_path: Path) -> None:
    environment = fake_environment(tmp_path, f"cat > {tmp_path / 'request'}; echo {{}}")
    assert ask(environment, {"texts": ["für"]}, FREE) == {}
    assert json.loads((tmp_path / "request").read_text(encoding="utf-8")) == {"texts": ["für"]}


# What TileLang rejects


def test_a_kernel_that_tilelang_rejects_is_told_with_its_line(small: Exploration, tmp_path: Path) -> None:
    answering(tmp_path, {"error": {"kind": "trace", "text": "TileLang 0.1.15 has no T.sqr", "where": [0, 4]}})
    with pytest.raises(BackendError) as caught:
        small.gpu(environment=tmp_path)
    assert (caught.value.code, caught.value.message) == (
        "TTX-B042", "TileLang rejects the kernel: TileLang 0.1.15 has no T.sqr",
    )  # fmt: skip
    assert caught.value.span is not None
    assert caught.value.span.line == small.kernel.first_line + 3


def test_a_failed_pass_ends_the_lane(small: Exploration, tmp_path: Path) -> None:
    answering(tmp_path, FAILED)
    lane = small.gpu(environment=tmp_path)
    assert [(step.letter, step.error is not None) for step in lane.steps] == [("L1", False), ("L2", True)]
    assert repr(lane) == "<GPU lane of main for sm_90a: L2 LayoutInference failed>"
    with pytest.raises(BackendError, match="a pass of TileLang failed: InternalError: no available layout") as caught:
        _ = lane.code
    assert caught.value.code == "TTX-B043"
    file, first = small.kernel.file, small.kernel.first_line
    assert lane.notes == (f"{file}:{first + 2}: T.annotate_tt_layout is left out",)
    for text in (str(lane), lane._repr_html_()):
        assert "no available layout found" in text
        assert "T.annotate_tt_layout is left out" in text
    before = copy.deepcopy(FAILED) | {"passes": []}
    with pytest.raises(BackendError, match="no available layout found"):
        read_answer("main", small.kernel.source, before, portable(small.kernel).places, "sm_90a")


# PTX

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'matmul_kernel' for 'sm_90a'
ptxas info    : Function properties for matmul_kernel
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 1024 bytes smem
"""


def test_the_words_of_ptxas_are_a_table() -> None:
    assert read_resources(PTXAS) == (Resources("matmul_kernel", 168, 8, 4, 16, 1024, 3),)


def test_without_nvcc_that_is_told(lane: GpuLane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = fake_environment(tmp_path, "true")
    monkeypatch.setattr(ptx, "find_nvcc", lambda: None)
    with pytest.raises(BackendError, match="nvcc is missing") as caught:
        lane.compile(environment=tmp_path)
    assert (caught.value.code, environment.include_folders[0].name) == ("TTX-B044", "src")


def fake_nvcc(folder: Path, nvcc: str, ptxas: str) -> Path:
    folder.mkdir()
    for name, script in (("nvcc", nvcc), ("ptxas", ptxas)):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder / "nvcc"


NVCC = (
    'case "$*" in --version) echo "release 13.0, V13.0.88" ;; *) while [ "$1" != -o ]; do shift; done; '
    'echo ".version 9.0" > "$2" ;; esac'
)


def test_ptx_and_its_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "said").write_text(PTXAS)
    nvcc = fake_nvcc(tmp_path / "bin", NVCC, f"cat {tmp_path / 'said'}")
    monkeypatch.setattr(ptx, "find_nvcc", lambda: nvcc)
    made = compile_ptx("// nothing", "sm_90a", fake_environment(tmp_path / "gpu", "true"), 20, None)
    assert isinstance(made, Compiled)
    assert (made.ptx.text, made.nvcc) == (".version 9.0\n", "nvcc V13.0.88")
    assert "matmul_kernel  168        8 B" in str(made)
    assert "<td>168</td>" in made._repr_html_()


def test_failures_of_nvcc_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def message(nvcc: Path) -> str:
        monkeypatch.setattr(ptx, "find_nvcc", lambda: nvcc)
        with pytest.raises(BackendError) as caught:
            compile_ptx("", "sm_90a", environment, 1, None)
        return caught.value.message

    environment = fake_environment(tmp_path / "gpu", "true")
    failing = fake_nvcc(tmp_path / "failing", "echo warning; echo 'kernel.cu(3): error: no such name'; exit 2", "true")
    assert message(failing) == "nvcc failed: kernel.cu(3): error: no such name"
    assert message(fake_nvcc(tmp_path / "slow", "sleep 30", "true")) == "nvcc did not end within 1 seconds"
    failing.chmod(0o644)
    assert message(failing) == f"{failing} does not start: Permission denied"


def test_ttexplore_itself_imports_neither_torch_nor_tilelang() -> None:
    code = (
        "import sys, ttexplore, pathlib; "
        f"ttexplore.explore({KERNELS['matmul'][0]!r}, M=256, N=256, K=256).gpu(environment=pathlib.Path('nowhere')); "
        "print([name for name in sys.modules if re.match('torch|tilelang', name)])"
    )
    done = subprocess.run([sys.executable, "-c", "import re; " + code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n", re.sub("\n.*", "", done.stderr)


# A damaged recording


def _damaged(kernel: Exploration, folder: Path, content: bytes) -> BackendError:
    sent = portable(kernel.kernel)
    request = request_for(sent.texts, sent.arguments, "sm_90a")
    write_recording("damaged", request, {}, folder).write_bytes(content)
    with pytest.raises(BackendError) as caught:
        recorded(request, folder)
    return caught.value


@pytest.mark.parametrize(
    "content",
    [
        b"", b"no archive", lzma.compress(b"x")[:-4], lzma.compress(b"{"), lzma.compress(b"\xff"),
        lzma.compress(b"[" * 100_000), 
    ],
)  # fmt: skip
def test_a_damaged_recording_is_told(gemm: Exploration, tmp_path: Path, content: bytes) -> None:
    error = _damaged(gemm, tmp_path, content)
    assert (error.code, error.message[:26]) == ("TTX-B041", "the recorded lane damaged.")


@pytest.mark.parametrize(
    ("where", "values"),
    [
        (("listings",), (None, 3, {}, [], [3])), (("passes",), (None, 3, [3])), (("versions",), (None, [], "x")),
        (("seconds",), (None, "x", [])), (("notes",), (None, 3, [3])),
        (("passes", 1, "name"), (None, 3, [])), (("passes", 1, "stage"), (None, "x", [])),
        (("passes", 1, "summary"), (None, 3, [])), (("passes", 1, "seconds"), (None, "x")),
        (("passes", 1, "before"), (None, -1, 10**9, "x", math.inf)), (("passes", 1, "depth"), (None, "x")),
        (("listings", 0, "text"), (None, 3, [3], [None])), (("listings", 0, "places"), (None, 3, [3], [[3]])),
    ],
)  # fmt: skip
def test_a_recording_with_wrong_parts_is_told(
    gemm: Exploration, where: tuple[str | int, ...], values: tuple[object, ...]
) -> None:
    sent = portable(gemm.kernel)
    right = recorded(request_for(sent.texts, sent.arguments, "sm_90a"))
    assert right is not None
    missing = object()
    for value in (*values, missing):
        answer: Any = copy.deepcopy(right)
        part = answer
        for key in where[:-1]:
            part = part[key]
        if value is missing:
            del part[where[-1]]
        else:
            part[where[-1]] = value
        with pytest.raises(BackendError) as caught:
            read_answer("matmul", gemm.kernel.source, answer, sent.places, "sm_90a", "no environment")
        assert caught.value.code == "TTX-B041"
        assert caught.value.message.startswith("the recorded lane cannot be read: ")
