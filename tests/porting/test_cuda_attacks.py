"""Foreign sources that try more than computing: nothing of it happens, and each ends with a sentence at its line."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttexplore.backends.emulator.compiler import Toolchain, find_compiler
from ttexplore.control import Control
from ttexplore.errors import BackendError, Cancelled
from ttexplore.porting.proof.cuda import runner as running
from ttexplore.porting.proof.cuda.runner import CudaRunner, cuda_runner
from ttexplore.porting.proof.cuda.text import Translation, translated
from ttexplore.porting.proof.cuda.tokens import names_of_header
from ttexplore.porting.proof.running import CannotRun, Launch

pytest.importorskip("tree_sitter_cuda")
SOURCES = Path(__file__).parent / "cuda"
WITNESS = Path("/tmp/ttx-attack-witness")


def attack(source: str) -> str:
    """What is said of a source whose kernel is `k(float *x, int n)`."""
    WITNESS.unlink(missing_ok=True)
    with pytest.raises(CannotRun) as raised:
        cuda_runner(source, "k").run(Launch((1,), (4,)), {"x": np.zeros(4, np.float32), "n": 4})
    assert not WITNESS.exists(), "the source has run something"
    return str(raised.value)


BODY = "__global__ void k(float *x, int n) {{ {} }}"
# What is refused before the compiler sees it, by the construct that the sentence names.
REFUSED = {
    "asm": '\n__global__ void k(float *x, int n) { asm volatile("syscall"); }',
    "__asm__": '\n__global__ void k(float *x, int n) { __asm__("syscall"); }',
    "extern": '\nextern "C" int system(const char*);\n__global__ void k(float *x, int n) { extern int f(int); }',
    "__builtin_execl": '\n__global__ void k(float *x, int n) { __builtin_execl("/bin/sh", "sh", "-c", "x", nullptr); }',
    "__attribute__": "\n__device__ void __attribute__((constructor)) f() {}\n__global__ void k(float *x) { f(); }",
    "#": '\n__global__ void k(float *x, int n) {\n#include "/etc/passwd"\n}',
    "_Pragma": '\n__global__ void k(float *x, int n) { _Pragma("GCC poison x") }',
    "__FILE__": "\n__global__ void k(float *x, int n) { x[0] = __FILE__[0]; }",
    "__has_include": "\n#define H __has_include(<x>)\n__global__ void k(float *x, int n) { x[0] = H; }",
    "##": "\n#define P(a, b) a##b\n__global__ void k(float *x, int n) { P(__a, sm__)(\"nop\"); }",
    "%:": "\n__global__ void k(float *x, int n) {\n%:include \"/etc/passwd\"\n}",
    "??": "\n__global__ void k(float *x, int n) { int a??(1??); }",
    "\\": "\n__global__ void k(float *x, int n) { x[0] = 1; \\\n }",
    "new": "\n__global__ void k(float *x, int n) { int *p = new int[n]; x[0] = p[0]; }",
    "ttx_machine": "\n__global__ void k(float *x, int n) { ttx_machine::lane = 7; }",
    "throw": "\n__global__ void k(float *x, int n) { throw 1; }",
    "__constinit": "\n__global__ void k(float *x, int n) { static __constinit int i = 1; x[0] = i; }",
    "__attribute": "\n#define A __attribute((naked))\n__global__ void k(float *x, int n) { A; }",
}  # fmt: skip


@pytest.mark.parametrize("word", REFUSED)
def test_what_reaches_out_is_no_text_for_the_compiler(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_compiled", lambda *_: pytest.fail("the compiler was started"))
    said = attack(REFUSED[word])
    # Where the tree has no kernel, nothing of the text is taken over.
    assert (f"`{word[:1]}" in said and "line" in said) or "no definitions of the kernel" in said, said


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (BODY.format('system("touch /tmp/ttx-attack-witness");'), "system"),
        (BODY.format("fork();"), "fork"),
        (BODY.format("x[0] = open(0, 0);"), "open"),
        (BODY.format("::execve(0, 0, 0);"), "execve"),
        (BODY.format("int system(const char*); system(0);"), "system"),
        ('#include <stdlib.h>\n#include "/etc/passwd"\n' + BODY.format("exit(1);"), "exit"),
        ("extern \"C\" int getpid();\n" + BODY.format("x[0] = getpid();"), "getpid"),
        ("__device__ int f() { return 1; }\n__device__ const int early = f();\n" + BODY.format("x[0] = early;"), "f()"),
        ("struct S { __device__ S() {} int i; };\n__device__ S s;\n" + BODY.format("x[0] = s.i;"), "s"),
        ("template <int N> struct F { static constexpr int v = F<N + 1>::v; };\n" + BODY.format("x[0] = F<0>::v;"), ""),
        ("constexpr int f(int i) { return f(i + 1); }\n" + BODY.format("constexpr int v = f(1); x[0] = v;"), ""),
        ("constexpr long f() { long s = 0; for (long i = 0; i < 1000000000000; ++i) s += i; return s; }\n"
         + BODY.format("constexpr long v = f(); x[0] = v;"), ""),
    ],
)  # fmt: skip
def test_what_does_not_compile_has_its_line(source: str, part: str) -> None:
    start = time.monotonic()
    said = attack(source)
    assert part in said, said
    assert "line" in said or "no definition" in said, said
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("volatile int i = 1; while (i) {}", "did not end within"),
        ("for (;;) __syncthreads();", "did not end within"),
        ("volatile float a[1 << 20]; for (int i = 0; i < 1 << 20; ++i) a[i] = n; x[0] = a[n];", "overflows"),
        ("volatile int a[64]; a[n & 63] = n; k(x, n + a[n & 63]);", "overflows"),
        ("*(volatile int *)0 = 1;", "memory that no argument has"),
        ("((void (*)())x)();", "no function"),
        ("volatile int zero = n - n; x[0] = n / zero;", "by 0"),
        ("__shared__ float s[4]; s[threadIdx.x + n] = 1; x[0] = s[0];", "element"),
        ("int i; x[i] = 1;", "uninitialized"),
        ("*(int *)((char *)x + 1) = n;", "aligned"),
        ("if (threadIdx.x) __syncthreads(); \nelse { __syncthreads();\n __syncthreads(); x[0] = 1; }", "wait"),
        ("if (threadIdx.x) __shfl_sync(~0u, n, 0); else __syncthreads();", "wait for each other"),
    ],
)  # fmt: skip
def test_what_goes_wrong_while_it_runs_ends_with_a_sentence(
    body: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(running, "_RUN_SECONDS", 1)
    assert part in attack(f"__global__ void k(float *x, int n) {{ {body} }}")


def compiled_whole(text: str, tmp_path: Path) -> CudaRunner:
    """A runner for a text that has not gone through the reading: what remains if that misses something."""
    compiler = find_compiler()
    assert compiler is not None
    return CudaRunner(Translation(text, "k", ("x", "n"), ()), Toolchain(compiler, tmp_path.absolute()))


CALL = """
inline long call(long number, long a, long b, long c) {
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
"""


@pytest.mark.skipif(os.uname().sysname != "Linux" or os.uname().machine != "x86_64", reason="assembler of Linux on x86")
@pytest.mark.parametrize(
    "body",
    [
        'call(2, (long)"/tmp/ttx-attack-witness", 0101, 0644)',  # open
        "call(57, 0, 0, 0)",  # fork
        'call(59, (long)"/bin/sh", 0, 0)',  # execve
        "call(41, 2, 1, 0)",  # socket
        "call(62, getpid_of_parent, 9, 0)",  # kill
        "call(9, 0, 4096, 7)",  # executable memory
        'call(1, 2, (long)"x", 1)',  # write to the standard error
    ],
)
def test_a_text_that_was_misread_has_no_system_calls(body: str, tmp_path: Path) -> None:
    WITNESS.unlink(missing_ok=True)
    body = body.replace("getpid_of_parent", str(os.getpid()))
    runner = compiled_whole(CALL + f"__global__ void k(float *x, int n) {{ {body}; x[0] = 1; }}", tmp_path)
    with pytest.raises(CannotRun, match="called the operating system"):
        runner.run(Launch((1,), (1,)), {"x": np.zeros(4, np.float32), "n": 4})
    assert not WITNESS.exists()


@pytest.mark.skipif(os.uname().sysname != "Linux" or os.uname().machine != "x86_64", reason="assembler of Linux on x86")
def test_a_constructor_has_no_system_calls_either(tmp_path: Path) -> None:
    WITNESS.unlink(missing_ok=True)
    early = '__attribute__((constructor(101))) void early() { call(2, (long)"/tmp/ttx-attack-witness", 0101, 0644); }'
    runner = compiled_whole(CALL + early + "__global__ void k(float *x, int n) { x[0] = 1; }", tmp_path)
    with pytest.raises(CannotRun, match="called the operating system"):
        runner.run(Launch((1,), (1,)), {"x": np.zeros(4, np.float32), "n": 4})
    assert not WITNESS.exists()


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(running, "_RUN_SECONDS", 1)
    attack("__global__ void k(float *x, int n) { volatile int i = 1; while (i) {} }")
    attack("__global__ void k(float *x, int n) { *(volatile int *)0 = 1; }")
    assert list(tmp_path.iterdir()) == []


def test_setting_cancel_ends_a_run() -> None:
    cancel = threading.Event()
    runner = cuda_runner("__global__ void k(float *x, int n) { volatile int i = 1; while (i) {} }", "k")
    arguments: dict[str, Any] = {"x": np.zeros(4, np.float32), "n": 4}
    threading.Timer(0.5, cancel.set).start()
    with pytest.raises(Cancelled):
        runner.run(Launch((1,), (4,)), arguments, Control(cancel))


def test_a_run_ends_at_the_time_limit_of_the_port() -> None:
    runner = cuda_runner("__global__ void k(float *x, int n) { volatile int i = 1; while (i) {} }", "k")
    arguments: dict[str, Any] = {"x": np.zeros(4, np.float32), "n": 4}
    runner.program(arguments, Control())
    control = Control(seconds=1.0, start=time.perf_counter(), what="the port")
    with pytest.raises(BackendError, match="the port did not end within the time limit of 1 seconds"):
        runner.run(Launch((1,), (4,)), arguments, control)


def test_a_race_is_no_result() -> None:
    source = "__global__ void k(float *x, int n) { x[0] = threadIdx.x; }"
    assert "race: x[0] is 3.0 or 0.0" in attack(source)
    source = BODY.format("__shared__ float s[4]; int t = threadIdx.x; s[t] = t; {} x[t] = s[t ^ 1];")
    assert "race" in attack(source.replace("{}", ""))
    runner = cuda_runner(source.replace("{}", "__syncthreads();"), "k")
    done = runner.run(Launch((1,), (4,)), {"x": np.zeros(4, np.float32), "n": 4})
    assert list(done.arrays["x"]) == [1, 0, 3, 2]


@pytest.mark.parametrize(("index", "kind", "line"), [("threadIdx.x - 1", "read", 3), ("threadIdx.x + 1", "read", 3)])
def test_accesses_outside_of_arrays_have_their_lines(index: str, kind: str, line: int) -> None:
    source = f"__global__ void k(float *x, float *y, int n) {{\n  y[threadIdx.x] =\n    x[int({index})];\n}}"
    x = np.zeros(4, np.float32)
    done = cuda_runner(source, "k").run(Launch((1,), (4,)), {"x": x, "y": x, "n": 4})
    (access,) = done.outside
    assert (access.kind, access.tensor, access.index) == (kind, "x", -1 if "-" in index else 4)
    assert access.line in (0, line)
    done = cuda_runner(source.replace("y[threadIdx.x] =\n    x[int(", "x[int(").replace(")];", ")] = y[0];"), "k").run(
        Launch((1,), (4,)), {"x": x, "y": x, "n": 4}
    )
    (access,) = done.outside
    assert (access.kind, access.tensor, access.index) == ("write", "x", -1 if "-" in index else 4)


@pytest.mark.parametrize("size", [1, 3, 5, 1023, 1025])
def test_one_element_behind_an_array_of_any_size_is_seen(size: int) -> None:
    source = "__global__ void k(unsigned char *x, int n) { if (threadIdx.x == 0) x[n] = 9; }"
    for count in (size, -1):
        done = cuda_runner(source, "k").run(Launch((1,), (4,)), {"x": np.zeros(size, np.uint8), "n": count})
        (access,) = done.outside
        assert (access.kind, access.index) == ("write", count)


def test_texts_with_mistakes_are_refused_or_translated() -> None:
    draw = random.Random(1)
    pieces = [
        "{",
        "}",
        "(",
        ")",
        "template <",
        ">",
        "#define X ",
        '"',
        "'",
        "/*",
        "//",
        "\\\n",
        'extern "C" {',
        "=",
        ";",
    ]
    pieces += [
        "namespace a {",
        "struct S {",
        "using ",
        "operator+",
        "enum {A,",
        "extern __shared__ float q[];",
        "#if 1\n",
    ]
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.cu"))}
    refused = 0
    for _ in range(400):
        name = draw.choice([*texts])
        text = texts[name]
        for _ in range(3):
            at = draw.randrange(len(text))
            text = text[:at] + draw.choice([draw.choice(pieces), ""]) + text[at + draw.choice([0, 1, 20]) :]
        try:
            translated(text, name)
        except CannotRun:
            refused += 1
    assert 100 < refused < 400


def test_memory_without_a_value_is_no_number() -> None:
    source = (
        "__global__ void k(float *x, int n) { extern __shared__ float d[]; __shared__ half h; x[0] = d[1]; x[1] = h; }"
    )
    done = cuda_runner(source, "k").run(Launch((2,), (1,), 16), {"x": np.zeros(4, np.float32), "n": 4})
    assert np.isnan(done.arrays["x"][:2]).all()


def test_names_of_the_header_are_those_that_it_has() -> None:
    names = names_of_header()
    assert {"__syncthreads", "__shared__", "__half2float", "__expf"} <= names
    assert not [name for name in names if name.startswith(("__builtin", "__asm", "__attribute", "__FILE"))]
