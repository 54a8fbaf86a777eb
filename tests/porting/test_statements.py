"""Statements and expressions that no rule knows refuse a kernel, with their line; others are written as they are."""

from __future__ import annotations

import threading

import pytest

import ttexplore as ttx
from tests.porting.test_port import ATTENTION, GEMM, HEAD, ROPE, SAXPY, SOFTMAX, draft_of, read, readable, refused
from ttexplore.errors import BackendError, Cancelled, UsageError

BEGIN = "i = tl.program_id(0) * B + tl.arange(0, B)\nm = i < n\nv = tl.load(x + i, mask=m)\n"
END = "\ntl.store(y + i, v, mask=m)"
TRITON = (
    "match n:\n    case 1: v = v + 1", "try:\n    v = v * 2\nexcept: pass", "with f():\n    v = v * 2", "assert n > 3",
    "if n > 3:\n    return", "if n > 3:\n    v = v * 2", "v = v * 2 if n > 3 else v", "while False:\n    v = v + 1",
    "raise ValueError", "for q in range(3):\n    break", "for q in range(3):\n    continue", "def h(v):\n    return v",
    "if (v := v * 2) is not None: pass", "l = [v]\nl[0] *= 2\nv = l[0]", "a.b = v * 2\nv = a.b", "exec('v = v * 2')",
    "globals()['v'] = v * 2", "setattr(v, 'data', 0)", "v, *w = v * 2, 3", "v = v * (10 ** 9 ** 9)",
    "v = sum([v for q in range(3)])", "del v", "for q in range(3):\n    v = v\nelse:\n    v = v * 5",
    "v = v * (1 < 2 < 1)", "yield v", "v = (lambda a: a)(v)", "v = v @ v", "v = ~v", "global n", "v = f'{v}'",
    "v = {0: v}[0]", "v = v[0]", "v = v[::2]", "v = not v", "v = v and m", "import os", "v = await f()",
    "v = tl.load(x + i, mask=m & (n > 3))", "v = tl.load(x + i, mask=i < n - 1)", "v = tl.load(x + i, mask=i * 2 < n)",
    "v = unknown(v)", "v = v * UNKNOWN", "v = v.to(tl.int32, bitcast=True)", "v = tl.reshape(v, (B,))", "return",
    "tl = other", "v, w = v", "v = v * (1 << 1000000)", "v = v * 10 ** 400", "for q in range(0):\n    v = v * 2.0",
    "for q in tl.static_range(2):\n    v = v * 2.0", "class C: pass", "async def f(): pass", "v: tl.constexpr",
    "print(v)", "v = tl.exp()", "v = tl.exp(v, v)", "v = v * 1or 2",
    "v.x += 1", "(v).store(v)", "tl.device_print('v', *v)",
)  # fmt: skip
CUDA = (
    "v = DBL(v);", "DBL(v);", "float& w = v; w = w * 2.f;", "float* w = &v; *w = *w * 2.f;",
    "auto g = [&]() { v = 1.f; };",
    "try { v = 1.f; } catch (...) {}", "union { float f; int i; } u; u.f = v;", "static float s = 0; s = s + v; v = s;",
    "if (f[0]) goto end; v = v * 2.f; end:;", "switch (n) { default: v = 2.f; }",
    "do { v = v * 2.f; } while (v < 1.f);",
    "while (v < 1.f) v = v * 2.f;", "unknown(v);", "unknown(&v);", "v = unknown(v);", "n > 3 ? v = 1.f : v = 2.f;",
    "\n#ifdef F\n v = v * 2.f;\n#endif\n", "\n#if 0\n v = v * 2.f;\n#endif\n", "auto [a, b] = pair(v, 1.f);",
    "{ float v = 2.f; v = v * 3.f; }", "v = v * (0u - 1);", "v = v * (n / 2);", "v = (int)v;", "int w = v; v = w;",
    "int w = 0; w = v; v = w;", "v = v * 010;", "v = v * 1e5__import__;", "v = v * 0x1p3f;", "v = v * 1'000;",
    "v = v * (threadIdx.x > 3);", "if (threadIdx.x > 3) v = 2.f * v;", "asm(\"nop;\");", "volatile float w = v; v = w;",
    "struct S { float a; } s; v = s.a;", "v <<= 1;", "float w; v = w;", "v = w;",
    "delete x;", "throw 1;",
    "for (;;) v = 2.f;", "for (float q : x) v = q;", "v = ~n;", "v = sizeof(v);", "v = *(&v + 1);", "return; v = 1.f;",
    "v = reinterpret_cast<int&>(v);", "v = static_cast<int>(v);", "typedef float T; T w = v;", "using T = float;",
    "v = v; } { ", "v = expf();", "v = *reinterpret_cast<float*>();",
)  # fmt: skip


def triton(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in (BEGIN + body + END).split("\n"))
    return f"{HEAD}def k(x, y, n, B: tl.constexpr):\n{lines}"


def cuda(body: str) -> str:
    return (
        "#define DBL(x) x = x * 2.f\nconst int kWhole = 7;\n"
        "__global__ void k(const float* x, float* y, const int* f, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
        f"  float v = x[i];\n  {body}\n  y[i] = v;\n}}\n"
    )


@pytest.mark.parametrize("body", TRITON)
def test_triton_that_is_not_understood(body: str) -> None:
    try:
        reason = refused(triton(body))
    except UsageError:
        return
    assert reason


@pytest.mark.parametrize("body", CUDA)
def test_cuda_that_is_not_understood(body: str) -> None:
    assert refused(cuda(body))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("v += 1; v *= 2.f;", "(x_block[i, j] + 1.0) * 2.0"), ("v++; ++v;", "(x_block[i, j] + 1.0) + 1.0"),
        ("v = v * 2.f, v = v + 1.f;", "(x_block[i, j] * 2.0) + 1.0"),
        ("int w = 7 / 2; v = v * w;", "x_block[i, j] * 3.0"),
        ("if constexpr (true) v = v * 2.f;", "x_block[i, j] * 2.0"), ("v = v * (-7 / 2);", "x_block[i, j] * -3.0"),
        ("int w = 2.7f; v = v * w;", "x_block[i, j] * 2.0"), ("v = v * kWhole;", "x_block[i, j] * 7.0"),
        ("v = v * kWhole / 4;", "(x_block[i, j] * 7.0) / 4.0"), ("v = v, 2.f;", "x_block[i, j]"),
    ],
)  # fmt: skip
def test_cuda_that_is_written(body: str, text: str) -> None:
    readable(SAXPY)
    (kernel,) = read(cuda(body)).kernels
    assert kernel.outside == ""
    assert f"= {text}\n" in draft_of(kernel)


def test_the_line_is_named() -> None:
    (kernel,) = read(triton("assert n > 3")).kernels
    assert kernel.outside == "`assert n > 3` (line 10) is not understood"


@pytest.mark.parametrize(
    "changed",
    [
        ATTENTION.replace("K + at", "K + (tl.program_id(1) // 4) * sh"),
        ATTENTION.replace("* scale", "* scale + (j[None, :] - m[:, None]) * n"),
        ATTENTION.replace("acc / total[:, None]", "acc / (total[:, None] + 1)"),
        ATTENTION.replace("range(0, n, BN)", "range(BN, n, BN)"),
        ATTENTION.replace("range(0, n, BN)", "range(0, n - BN, BN)"),
        ATTENTION.replace("m[:, None] >=", "m[:, None] + n >="),
        ATTENTION.replace("* scale", ""), ATTENTION.replace("* scale", "* scale * scale"),
        ATTENTION.replace("* scale", "* 0.125"), ATTENTION.replace("tl.exp(", "tl.exp2("),
        ATTENTION.replace("tl.exp(s", "tl.exp2(s"), ATTENTION.replace("    top = new\n", ""),
        ATTENTION.replace("V + at", "V"), ATTENTION.replace("K + at", "K + at + sh"),
        ROPE.replace("c + at", "c + (tl.program_id(0) % half) * step"), ROPE.replace("i + half)", "i + half + 1)"),
        ROPE.replace("one * cc - two * ss", "one * cc + two * ss"),
        ROPE.replace("tl.load(s + at + i)", "tl.load(s + i)"),
        GEMM.replace("* BM +", "* BN +"), GEMM.replace("tl.cdiv(K, BK)", "tl.cdiv(K, BM)"),
    ],
)  # fmt: skip
def test_rules_check_each_summand_and_index(changed: str) -> None:
    assert changed not in (ATTENTION, ROPE, GEMM)
    (kernel,) = read(changed).kernels
    assert (draft_of(kernel), kernel.family) == ("", "")


def test_powers_of_two_get_the_logarithm() -> None:
    first = ATTENTION.replace("tl.exp(", "tl.exp2(").replace("* scale", "* scale * 1.44269504")
    assert [draft_of(*read(source).kernels) for source in (first,)] == [draft_of(*read(ATTENTION).kernels)]
    assert draft_of(*read(first).kernels)


@pytest.mark.parametrize(
    "line", ["v = v * (1.5 - 0.5 * v * v * v)", "v = tl.where(v > 0, v * v, v + v)", "v = v * v + v"]
)
def test_what_occurs_twice_is_written_once(line: str) -> None:
    sizes = [len(draft_of(*read(triton("\n".join([line] * count))).kernels)) for count in (20, 40)]
    assert sizes[0] < sizes[1] < 3 * sizes[0]


def test_long_chains_have_a_limit() -> None:
    (kernel,) = read(triton("\n".join(["v = v * 0.5 + 1.0"] * 3000))).kernels
    assert "more than 1,500 operations" in kernel.outside
    assert draft_of(*read(triton("\n".join(["v = v * 0.5 + 1.0"] * 300))).kernels)
    (kernel,) = read(triton(f"v = v{' + v' * 500}")).kernels
    assert "nests more than" in kernel.outside
    nested = "\n".join(f"{'    ' * depth}for q{depth} in range(n):" for depth in range(18))
    (kernel,) = read(triton(f"{nested}\n{'    ' * 18}x += 1")).kernels
    assert "more than 100,000 statements" in kernel.outside


def test_a_port_ends_when_it_is_told_to() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        ttx.port(SOFTMAX, cancel=cancel)
    with pytest.raises(BackendError, match="the port did not end within the time limit of 1e-09 seconds"):
        ttx.port(SOFTMAX, time_limit_seconds=1e-9)
    assert ttx.port(SOFTMAX, time_limit_seconds=600).skeleton


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_characters_that_no_text_has(character: str) -> None:
    with pytest.raises(UsageError, match="a character that no text has"):
        ttx.port(SOFTMAX + character)


@pytest.mark.parametrize(
    "declaration",
    [
        "struct Pair { Pair(); float v; };",
        "struct Flag { explicit operator bool() const; };",
        "struct Page { ~Page(); };",
        "operator bool();",
    ],
)
def test_declarations_without_a_type_are_read(declaration: str) -> None:
    source = "__global__ void k(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] = x[i] + 1.f; }"
    (kernel,) = ttx.port(f"{declaration}\n{source}", prove=False).kernels
    assert kernel.draft is not None
