"""What the tracer makes: the IR contract, both styles, and a source span on each statement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from tvm import tirx
from tvm_ffi import structural_equal

from tests.said import said
from ttexplore.ir.adapter import is_buffer, span_of, spans_of
from ttexplore.ir.build import constant, dtype_of, scope_of, shape_of
from ttexplore.language.load import load_kernel, load_module, trace

EAGER = """
@tilelang.jit
def matmul(A, B, block_M, block_N, block_K, dtype=T.float16, accum_dtype=T.float32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j], 0)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C
"""
FACTORY = """
def factory(M, N, K, block_M, block_N, block_K, dtype=T.float16, accum_dtype=T.float32):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return matmul
"""
SIZES = {"M": 256, "N": 128, "K": 96, "block_M": 64, "block_N": 32, "block_K": 32}


def statements(traced: Any) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(traced.function.body, (tirx.Stmt, found.append), order="pre")
    return found


def extents(region: Any) -> list[int]:
    return [int(part.extent) for part in region.region]


def test_eager_kernel_and_factory_give_the_same_ir(kernel_file: Callable[..., str]) -> None:
    eager = load_kernel(kernel_file(EAGER, "eager.py") + "::matmul", **SIZES)
    for decorator in (
        "",
        "@tilelang.jit\n",
        "@tilelang.jit(out_idx=[-1])\n",
        "@tilelang.autotune(configs=[])\n@tilelang.jit\n",
    ):
        text = FACTORY.replace("def factory", decorator + "def factory")
        factory = load_kernel(kernel_file(text, "factory.py") + "::factory", **SIZES)
        assert structural_equal(eager.function.body, factory.function.body, map_free_vars=True)
        assert factory.outputs == ((2,) if "out_idx" in decorator else ())
    assert eager.outputs == (2,)
    assert [int(index) for index in eager.function.attrs["tl.outs"]] == [2]
    assert str(eager.function.attrs["global_symbol"]) == eager.name == "matmul"


def test_gemm_follows_the_contract(kernel_file: Callable[..., str]) -> None:
    traced = load_kernel(kernel_file(EAGER) + "::matmul", **SIZES, dtype="bfloat16")
    parameters = [parameter for parameter in traced.function.params if is_buffer(parameter)]
    assert [parameter.name for parameter in parameters] == ["A", "B", "C"]
    assert [shape_of(parameter) for parameter in parameters] == [(256, 96), (96, 128), (256, 128)]
    assert {dtype_of(parameter) for parameter in parameters} == {"bfloat16"}
    assert {scope_of(parameter) for parameter in parameters} == {"global"}
    outer = traced.function.body
    assert isinstance(outer, tirx.For)
    inner = outer.body
    assert isinstance(inner, tirx.For)
    bindings = [loop.thread_binding for loop in (outer, inner)]
    assert [binding.thread_tag for binding in bindings if binding is not None] == ["blockIdx.x", "blockIdx.y"]
    assert [constant(loop.extent) for loop in (outer, inner)] == [4, 4]
    assert {loop.kind for loop in (outer, inner)} == {tirx.ForKind.THREAD_BINDING}
    assert int(outer.annotations["threads"]) == 128
    assert isinstance(inner.body, tirx.SeqStmt)
    body: list[Any] = inner.body.seq[:]
    kinds = [type(statement).__name__ for statement in body]
    assert kinds == ["AllocBuffer"] * 3 + ["Evaluate", "For", "For", "Evaluate"]
    scopes = [(a.buffer.name, a.buffer.ty.storage_scope, str(a.buffer.ty.dtype.dtype)) for a in body[:3]]
    assert scopes == [
        ("A_shared", "shared.dyn", "bfloat16"),
        ("B_shared", "shared.dyn", "bfloat16"),
        ("C_local", "local.fragment", "float32"),
    ]
    pipelined, parallel = body[4], body[5]
    assert (pipelined.kind, int(pipelined.extent), int(pipelined.annotations["num_stages"])) == (
        tirx.ForKind.SERIAL,
        3,
        3,
    )
    calls = [statement.value for statement in pipelined.body.seq]
    assert [call.op.name for call in calls] == ["tl.copy", "tl.copy", "tl.gemm"]
    assert [[extents(region) for region in call.args] for call in calls] == [
        [[64, 32], [64, 32]],
        [[32, 32], [32, 32]],
        [[64, 32], [32, 32], [64, 32]],
    ]
    assert (parallel.kind, parallel.body.kind) == (tirx.ForKind.PARALLEL, tirx.ForKind.PARALLEL)
    assert isinstance(parallel.body.body, tirx.BufferStore)
    fill = body[3].value
    assert (fill.op.name, float(fill.args[1].value), str(fill.args[1].ty.dtype)) == ("tl.fill", 0.0, "float32")


def test_every_statement_has_its_exact_span(kernel_file: Callable[..., str]) -> None:
    file = kernel_file(EAGER)
    traced = load_kernel(file + "::matmul", **SIZES)
    lines = Path(file).read_text().splitlines()
    shown: list[tuple[str, str]] = []
    for statement in statements(traced):
        if isinstance(statement, tirx.SeqStmt):
            continue
        span = span_of(statement)
        assert span is not None
        assert span.file == file
        assert span.line == span.end_line
        shown.append((type(statement).__name__, lines[span.line - 1][span.column - 1 : span.end_column - 1]))
    kernel = "with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by)"
    parallel = "for i, j in T.Parallel(block_M, block_N)"
    assert shown == [
        ("For", kernel),
        ("For", kernel),
        ("AllocBuffer", "A_shared = T.alloc_shared((block_M, block_K), dtype)"),
        ("AllocBuffer", "B_shared = T.alloc_shared((block_K, block_N), dtype)"),
        ("AllocBuffer", "C_local = T.alloc_fragment((block_M, block_N), accum_dtype)"),
        ("Evaluate", "T.clear(C_local)"),
        ("For", "for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3)"),
        ("Evaluate", "T.copy(A[by * block_M, k * block_K], A_shared)"),
        ("Evaluate", "T.copy(B[k * block_K, bx * block_N], B_shared)"),
        ("Evaluate", "T.gemm(A_shared, B_shared, C_local)"),
        ("For", parallel),
        ("For", parallel),
        ("BufferStore", "C_local[i, j] = T.max(C_local[i, j], 0)"),
        ("Evaluate", "T.copy(C_local, C[by * block_M, bx * block_N])"),
    ]


def test_variables_and_buffers_have_the_span_of_their_definition(kernel_file: Callable[..., str]) -> None:
    file = kernel_file(EAGER)
    traced = load_kernel(file + "::matmul", **SIZES)
    lines = Path(file).read_text().splitlines()

    def shown(variable: Any) -> str:
        span = span_of(variable)
        assert span is not None
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]

    loops: list[Any] = [statement for statement in statements(traced) if isinstance(statement, tirx.For)]
    assert [shown(loop.loop_var) for loop in loops] == ["bx", "by", "k", "i", "j"]
    assert shown(traced.function.params[0]) == "A: T.Tensor((M, K), dtype)"
    assert shown(traced.function.params[2]) == "C = T.empty((M, N), dtype)"
    assert shown(loops[1].body.seq[0].buffer).startswith("A_shared = ")


def test_expressions_have_spans(trace_body: Callable[..., Any]) -> None:
    traced = trace_body("for i, j in T.Parallel(64, 64):\n    C[i, j] = A[i, j] * 2.0 + T.exp(B[i, j])")
    store = statements(traced)[-1]
    value = store.value
    columns = {type(node).__name__: span_of(node) for node in (value, value.a, value.b)}
    assert [(kind, span.column, span.end_column) for kind, span in columns.items() if span] == [
        ("Add", 23, 53),
        ("Mul", 23, 36),
        ("Call", 39, 53),
    ]


def test_source_is_the_whole_function(kernel_file: Callable[..., str]) -> None:
    file = kernel_file(EAGER)
    traced = load_kernel(file + "::matmul", **SIZES)
    lines = Path(file).read_text().splitlines()
    assert traced.first_line == lines.index("@tilelang.jit") + 1
    assert [line.text for line in traced.source.lines] == lines[traced.first_line - 1 :]
    assert [line.origins[0].span.line for line in traced.source.lines] == list(range(traced.first_line, len(lines) + 1))
    assert (traced.source.language, traced.file) == ("python", file)


def test_tracing_twice_gives_equal_kernels(kernel_file: Callable[..., str]) -> None:
    kernel = load_module(kernel_file(EAGER)).matmul
    first, second = trace(kernel, **SIZES), trace(kernel, **SIZES)
    assert structural_equal(first.function, second.function)
    assert not structural_equal(first.function, trace(kernel, **{**SIZES, "M": 512}).function)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # A region by slices, and an element index completed from the other side.
        (
            "T.copy(A[by * 64, bx * 32], C[0:64, 0:32])",
            "T.copy(A[by * 64:by * 64 + 64, bx * 32:bx * 32 + 32], C[0:64, 0:32])",
        ),
        ("T.copy(C, A[64, 0])", "T.copy(C, A[64:128, 0:64])"),
        ("T.copy(A[64:, :64], C)", "T.copy(A[64:128, 0:64], C[:, :])"),
        ("T.clear(C)", "T.fill(C, 0)"),
        ("x = bx + 1\nT.fill(C, x)", "x = bx + 1\nT.fill(C, T.cast(x, 'float32'))"),
        # Python runs what it can: constants, lists, comprehensions, nested functions, walrus.
        ("for s in [0, 64]:\n    T.copy(A[s, 0], C)", "T.copy(A[0, 0], C)\nT.copy(A[64, 0], C)"),
        ("for s in [i * 64 for i in range(2)]:\n    T.copy(A[s, 0], C)", "T.copy(A[0, 0], C)\nT.copy(A[64, 0], C)"),
        ("if (n := 4) > 3:\n    T.fill(C, n)\nelse:\n    T.clear(C)", "T.fill(C, 4)"),
        (
            "def half(x):\n    return x / 2\nfor i in T.serial(4):\n    C[i, 0] = half(A[i, 0])",
            "for i in T.serial(4):\n    C[i, 0] = A[i, 0] / 2",
        ),
        (
            "def put(i):\n    C[i, 0] = A[i, 0]\nfor i in T.serial(4):\n    put(i)",
            "for i in range(4):\n    C[i, 0] = A[i, 0]",
        ),
        (
            "f = lambda x: x + 1.0\nfor i in range(4):\n    C[i, 0] = f(A[i, 0])",
            "for i in range(4):\n    C[i, 0] = A[i, 0] + 1.0",
        ),
        ("for s in [1, 2, 3]:\n    if s == 2:\n        break\n    T.fill(C, s)", "T.fill(C, 1)"),
        ("for s in [1, 2]:\n    if s == 1:\n        continue\n    T.fill(C, s)", "T.fill(C, 2)"),
        ("match A.shape:\n    case (128, n):\n        T.fill(C, n)", "T.fill(C, 128)"),
        ("assert A.shape[0] == 128, 'no'\nT.fill(C, A.shape[0] // 2)", "T.fill(C, 64)"),
        # Loops: range is a kernel loop, start and stop, steps, one index in a tuple.
        ("for i in range(2, 6):\n    C[i, 0] = 1.0", "for i in T.serial(2, 6):\n    C[i, 0] = 1.0"),
        ("for i in range(0, 6, 2):\n    C[i, 0] = 1.0", "for i in T.serial(0, 6, 2):\n    C[i, 0] = 1.0"),
        (
            "for i, j in T.grid(2, 3):\n    C[i, j] = 1.0",
            "for i in range(2):\n    for j in range(3):\n        C[i, j] = 1.0",
        ),
        ("for (i,) in T.Parallel(2):\n    C[i, 0] = 1.0", "for i in T.Parallel(2):\n    C[i, 0] = 1.0"),
        ("for i in T.serial(bx, 4):\n    C[i, 0] = 1.0", "for i in range(bx, 4):\n    C[i, 0] = 1.0"),
        # Operators.
        ("for i in range(4):\n    C[i, 0] += A[i, 0]", "for i in range(4):\n    C[i, 0] = C[i, 0] + A[i, 0]"),
        (
            "for i in range(4):\n    C[i, 0] = A[i, 0] if i < bx else 0.0",
            "for i in range(4):\n    C[i, 0] = T.if_then_else(i < bx, A[i, 0], 0)",
        ),
        (
            "if 0 < bx < 3 and not by == 1:\n    T.clear(C)",
            "if T.logical_and(T.logical_and(0 < bx, bx < 3), T.logical_not(by == 1)):\n    T.clear(C)",
        ),
        ("if bx > 0 and True:\n    T.clear(C)", "if bx > 0:\n    T.clear(C)"),
        ("if bx > 0 or True:\n    T.clear(C)", "T.clear(C)"),
        (
            "if bx == 0:\n    T.clear(C)\nelif bx == 1:\n    T.fill(C, 1)\nelse:\n    T.fill(C, 2)",
            "if bx == 0:\n    T.clear(C)\nelse:\n  if bx == 1:\n    T.fill(C, 1)\n  else:\n    T.fill(C, 2)",
        ),
        (
            "for i in range(4):\n    C[i, 0] = T.clamp(A[i, 0], 0, 6)",
            "for i in range(4):\n    C[i, 0] = T.min(T.max(A[i, 0], 0.0), 6.0)",
        ),
        # Allocations: two names for one buffer, buffers in a list, a variable.
        (
            "X = Y = T.alloc_shared((64, 64))\nT.copy(A[0, 0], X)\nT.copy(Y, C)",
            "X = T.alloc_shared((64, 64))\nT.copy(A[0, 0], X)\nT.copy(X, C)",
        ),
        (
            "X = [T.alloc_shared((64, 64)) for _ in range(2)]\nT.copy(X[0], X[1])",
            "X = T.alloc_shared((64, 64))\nY = T.alloc_shared((64, 64))\nT.copy(X, Y)",
        ),
        (
            "x = T.alloc_var('int32', init=3)\nx += 1\nT.fill(C, x)",
            "x = T.alloc_var(T.int32)\nx = 3\nx = x + 1\nT.fill(C, x)",
        ),
        (
            "X, Y = T.alloc_shared((64, 64)), T.alloc_shared((64, 64))\nT.copy(X, Y)",
            "X = T.alloc_shared((64, 64))\nY = T.alloc_shared((64, 64))\nT.copy(X, Y)",
        ),
        ("i = T.get_block_binding(0)\nT.copy(A[i * 32, 0], C[0:32, 0:64])", "T.copy(A[bx * 32, 0], C[0:32, 0:64])"),
        ("T.copy(A[bx, by], C[0, 1])", "C[0, 1] = A[bx, by]"),
        ("T.reduce_sum(C, A[0:64, 0])", "T.reduce(C, A[0:64, 0:1], 'sum', dim=1)"),
    ],
)
def test_two_ways_to_write_it_give_the_same_ir(trace_body: Callable[..., Any], left: str, right: str) -> None:
    one, other = trace_body(left), trace_body(right)
    assert structural_equal(one.function, other.function), f"{one.function.script()}\n{other.function.script()}"


def test_macro_statements_know_both_places(trace_body: Callable[..., Any]) -> None:
    macro = """
    @T.macro
    def scale(X, i, factor):
        y = X[i, 0] * factor
        C_is_free = y + 1.0
        X[i, 0] = C_is_free
        return y
    """
    traced = trace_body("for i in range(4):\n    z = scale(C, i, 2.0)\n    C[i, 1] = z", before=macro)
    plain = trace_body("for i in range(4):\n    y = C[i, 0] * 2.0\n    w = y + 1.0\n    C[i, 0] = w\n    C[i, 1] = y")
    assert structural_equal(traced.function, plain.function)
    stores = [statement for statement in statements(traced) if isinstance(statement, tirx.BufferStore)]
    assert [[(span.line, span.column) for span in spans_of(store)] for store in stores] == [
        [(8, 5), (14, 17)],
        [(15, 13)],
    ]


def test_while_and_break_in_kernel_loops(trace_body: Callable[..., Any]) -> None:
    traced = trace_body(
        "x = T.alloc_var('int32')\nx = 0\nwhile x < bx:\n    x += 1\n    if x == 3:\n        break\n"
        "for i in range(4):\n    if i > bx:\n        continue\n    C[i, 0] = 1.0"
    )
    kinds = [type(statement).__name__ for statement in statements(traced)]
    assert [kind for kind in kinds if kind in ("While", "Break", "Continue", "IfThenElse", "For")] == [
        "For", "For", "While", "IfThenElse", "Break", "For", "IfThenElse", "Continue",
    ]  # fmt: skip
    spans = [span_of(s) for s in statements(traced) if not isinstance(s, tirx.SeqStmt)]
    assert None not in spans


def test_reductions_and_gemm_flags(trace_body: Callable[..., Any]) -> None:
    traced = trace_body(
        "r = T.alloc_fragment((64,))\nT.reduce_max(C, r, dim=-1, clear=False)\nT.reduce_sum(C, r, dim=0)\n"
        "T.gemm(C, C, C, transpose_B=True)\nT.gemm(C, C, C, True, clear_accum=True)"
    )
    calls: list[Any] = [s.value for s in statements(traced) if isinstance(s, tirx.Evaluate)]
    assert [
        {key: value if isinstance(value, str) else int(value) for key, value in call.attrs.items()} for call in calls
    ] == [
        {"kind": "max", "dim": 1, "clear": 0},
        {"kind": "sum", "dim": 0, "clear": 1},
        {"transpose_B": 1},
        {"transpose_A": 1, "clear_accum": 1},
    ]


def test_grids_of_one_and_three_axes(trace_body: Callable[..., Any]) -> None:
    for scope, expected in (
        ("T.Kernel(8) as bx", [8]),
        ("T.Kernel(8) as (bx,)", [8]),
        ("T.Kernel(8, 4, 2, threads=256) as (bx, by, bz)", [8, 4, 2]),
        ("T.Kernel(8, 4)", [8, 4]),
        ("T.Kernel(8, 4) as blocks", [8, 4]),
    ):
        found = statements(trace_body("T.clear(C)", scope=scope))
        loops: list[Any] = [s for s in found if isinstance(s, tirx.For)]
        assert [int(loop.extent) for loop in loops] == expected


def test_scalar_parameters_are_allowed(trace_text: Callable[..., Any]) -> None:
    traced = trace_text(
        """
        @T.prim_func
        def kernel(C: T.Tensor[[64, 64], T.float32], n: T.int32):
            with T.Kernel(1) as bx:
                T.fill(C, n)
        """
    )
    assert [
        str(parameter.ty.dtype if not is_buffer(parameter) else "buffer") for parameter in traced.function.params
    ] == [
        "buffer",
        "int32",
    ]


def test_annotations_may_be_text(kernel_file: Callable[..., str]) -> None:
    header = "from __future__ import annotations\nimport tilelang\nimport tilelang.language as T\n"
    plain = load_kernel(kernel_file(FACTORY) + "::factory", **SIZES)
    text = load_kernel(kernel_file(FACTORY, "text.py", header) + "::factory", **SIZES)
    assert structural_equal(plain.function, text.function)
    eager = load_kernel(kernel_file(EAGER, "eager.py", header) + "::matmul", **SIZES)
    assert structural_equal(plain.function.body, eager.function.body, map_free_vars=True)


def test_gpu_hints_are_noted_with_their_lines(trace_body: Callable[..., Any]) -> None:
    traced = trace_body(
        "T.use_swizzle(10)\nT.gemm(C, C, C, policy=T.GemmWarpPolicy.FullRow)\nT.copy(A[0, 0], C, disable_tma=True)"
    )
    assert [note.partition("kernels.py")[2] for note in said(traced)] == [
        ":6: T.use_swizzle is a GPU hint without meaning here",
        ":7: T.gemm policy= divides work among GPU warps; a Tensix core has none",
        ":8: T.copy disable_tma= is a GPU hint without meaning here",
    ]
