"""A port is written only if running its source gives what the skeleton gives: what the reader gets wrong is a draft."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from tests.porting.test_port import (
    ADD,
    ATTENTION,
    GEMM,
    HEAD,
    LAYER_NORM,
    ROPE,
    SAXPY,
    SOFTMAX,
    draft_of,
    read,
    readable,
)
from ttexplore.errors import Cancelled, UsageError
from ttexplore.porting import port as porting
from ttexplore.porting.foreign.families import Attention, Family, Gemm, Rope, Rowwise, family_of
from ttexplore.porting.foreign.marks import ForeignKernel
from ttexplore.porting.foreign.skeletons import Skeleton, skeleton
from ttexplore.porting.foreign.values import Formula, Number, Output, Reduced, Value, replaced
from ttexplore.porting.proof import proving
from ttexplore.porting.proof.launches import TrialLaunch
from ttexplore.porting.proof.numbers import numbers_of
from ttexplore.porting.proof.running import CannotRun, Launch
from ttexplore.porting.proof.triton import triton_runner

Array = NDArray[Any]
N = 16


def rewrite(before: str, after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a writer's mistake from here on: other text."""

    def changed(kernel: ForeignKernel, family: Family) -> Skeleton:
        written = skeleton(kernel, family)
        assert before in written.text
        return replace(written, text=written.text.replace(before, after))

    monkeypatch.setattr(porting, "skeleton", changed)


def check_shown(source: str, before: str, after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a source is proved, and that a writer's mistake shows in an element."""
    assert ttx.port(source).kernels[0].proof is not None
    rewrite(before, after, monkeypatch)
    (kernel,) = ttx.port(source).kernels
    assert kernel.draft is not None
    assert kernel.draft.difference is not None, kernel.draft.reason


def recorded_launches(monkeypatch: pytest.MonkeyPatch) -> list[TrialLaunch]:
    """The launches of the proofs from here on."""
    launches: list[TrialLaunch] = []
    original = proving.launch_of

    def recorded(*arguments: Any) -> TrialLaunch:
        launches.append(original(*arguments))
        return launches[-1]

    monkeypatch.setattr(proving, "launch_of", recorded)
    return launches


def other_values(change: Callable[[Value], Value | None]) -> Callable[[Family], Family]:
    """A reader's mistake: other values are stored."""

    def changed(family: Family) -> Family:
        assert isinstance(family, Gemm | Rowwise)
        stores: tuple[Output, ...] = tuple(
            replace(store, value=replaced(store.value, change)) for store in family.stores
        )
        assert stores != family.stores
        return replace(family, stores=stores)

    return changed


def without_maximum(value: Value) -> Value | None:
    return Number(0.0) if isinstance(value, Reduced) and value.kind == "max" else None


def without_minimum_of_zero(value: Value) -> Value | None:
    return value.arguments[0] if isinstance(value, Formula) and value.name == "max" else None


def flipped(family: Family) -> Family:
    assert isinstance(family, Attention)
    return replace(family, causal=not family.causal)


def exchanged(family: Family) -> Family:
    match family:
        case Rope(_, cos, sin):
            return replace(family, cos=sin, sin=cos)
        case Attention(_, k, v):
            return replace(family, k=v, v=k)
        case _:
            raise AssertionError


def transposed(family: Any) -> Family:
    assert isinstance(family, Gemm)
    product = replace(family.product, transposed=not family.product.transposed)

    def other(value: Value) -> Value | None:
        return product if value == family.product else None

    stores = tuple(replace(store, value=replaced(store.value, other)) for store in family.stores)
    return replace(family, product=product, stores=stores)


# Its elements follow each other along the columns: no distances are parameters.
ROWS_OF_B = GEMM.replace("sam, sak, sbk, sbn, ", "").replace("* sam", "* K").replace(" * sak", "").replace(
    "* sbk", "* N"
).replace(" * sbn", "")  # fmt: skip
READ_WRONGLY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "no epilogue": (GEMM, other_values(without_minimum_of_zero)),
    "no maximum": (SOFTMAX, other_values(without_maximum)),
    "no mask": (ATTENTION, flipped), "values as keys": (ATTENTION, exchanged), "sine as cosine": (ROPE, exchanged),
}  # fmt: skip
WRITTEN_WRONGLY: dict[str, tuple[str, str, str]] = {
    "another sum": (SOFTMAX, "T.reduce_sum(", "T.reduce_max("), "other rows": (SOFTMAX, "y[by * block, 0]", "y[0, 0]"),
    "a lost term": (LAYER_NORM, "+ b_block[j]", "+ 0.0"), "rows for columns": (GEMM, "bias_block[j]", "bias_block[i]"),
    "no eps": (LAYER_NORM, "+ eps", "+ 0.0"), "keys beyond the end": (ATTENTION, "bx + 1", "bx"),
    "a factor": (ADD, "factor *", "1.001 *"), "an edge": (ADD, "T.ceildiv(columns, block)", "columns // block"),
    "a strict mask": (ATTENTION, "<= bx * block + i", "< bx * block + i"),
}  # fmt: skip


def test_what_is_right_is_proved() -> None:
    for source in (ADD, SOFTMAX, LAYER_NORM, GEMM, ROPE):
        ported = ttx.port(source)
        proof = ported.proof
        assert proof is not None
        assert proof is ported.written.proof
        assert proof.error < 1e-6
        # Several sizes, all of them different, and hostile inputs.
        assert len(proof.sizes) >= 3
        assert all(len(set(sizes.values())) == len(sizes) for sizes in proof.sizes)
        assert {"distinct", "large", "negative", "ties", "zeros"} <= set(proof.inputs)
        for name, outputs in proof.source.items():
            np.testing.assert_allclose(outputs, proof.skeleton[name], rtol=1e-6)


@pytest.mark.parametrize("name", READ_WRONGLY)
def test_what_the_reader_gets_wrong_is_a_draft(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, change = READ_WRONGLY[name]
    monkeypatch.setattr(porting, "family_of", lambda kernel: change(family_of(kernel)))
    check_draft(ttx.port(source))


def test_tensors_lie_as_in_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transposed tensor is no tensor with other distances, if the source says how its elements follow each other."""
    assert ttx.port(ROWS_OF_B).proof is not None
    monkeypatch.setattr(porting, "family_of", lambda kernel: transposed(family_of(kernel)))
    (kernel,) = ttx.port(ROWS_OF_B).kernels
    assert kernel.draft is not None
    assert "elements of b lie in another order" in kernel.draft.reason


@pytest.mark.parametrize("name", WRITTEN_WRONGLY)
def test_what_the_writer_gets_wrong_is_a_draft(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, before, after = WRITTEN_WRONGLY[name]
    rewrite(before, after, monkeypatch)
    check_draft(ttx.port(source))


BEYOND: dict[str, tuple[str, str, str]] = {
    "a length": (
        ADD.replace("    i =", "    limit = 1000\n    i ="), "factor *", "(factor if rows <= 1000 else 0.5) *"
    ),
    "another axis": (
        ADD.replace("    i =", "    limit = 4 << 4\n    i ="), "factor *", "(factor if columns <= 64 else 0.5) *"
    ),
    "a constant of the module": (
        ADD.replace("@triton.jit", "LIMIT = 1_000\n@triton.jit").replace("    i =", "    limit = LIMIT + 1\n    i ="),
        "factor *", "(factor if rows <= 1000 else 0.5) *",
    ),
    "a number of blocks": (
        ADD.replace("    i =", "    limit = 40\n    i ="), "factor *", "(factor if rows * columns < 40 * 8 else 0.5) *"
    ),
    "columns of a matrix": (
        GEMM.replace("    m =", "    limit = 60\n    m ="), "T.ceildiv(depth, block_depth)",
        "min(T.ceildiv(depth, block_depth), 60)",
    ),
    "CUDA": (SAXPY.replace("int i =", "const int limit = 1 << 9; int i ="), "a *", "(a if rows <= 512 else 0.5) *"),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_sizes_go_beyond_the_numbers_of_the_source(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_shown(*BEYOND[name], monkeypatch)


def test_numbers_are_those_of_what_the_kernel_uses() -> None:
    kernel = ForeignKernel("f", 1, ())
    text = (
        "A = 7\nB = 9\ndef g(x):\n    return x + 11\ndef h():\n    return 13\ndef f(x):\n    return g(x) + A * 64.0\n"
    )
    assert numbers_of("Triton", text, kernel) == (64, 11, 7)
    text = '#define N 48 // 50\n__global__ void f(float *x) { if (i2 > 0x40u) x[1] = 2.5f + 1000.0f; } /* 51 */ "52"'
    assert numbers_of("CUDA", text, kernel) == (1000, 64, 48)


def test_what_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "_SECONDS_BEYOND", 0.0)
    proof = ttx.port(BEYOND["a length"][0]).proof
    assert proof is not None
    assert "running both takes more than 0 s" in str(proof)


PERSISTENT = """
__global__ void doubled(int n, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = x[i] * 2.0f;
}
"""


def test_each_thread_takes_several_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = recorded_launches(monkeypatch)
    assert ttx.port(PERSISTENT).proof is not None
    assert any(int(trial.numbers["n"]) >= 2 * trial.launch.grid[0] * trial.launch.threads[0] for trial in launches)


def check_draft(ported: porting.Port) -> None:
    (kernel,) = ported.kernels
    assert (kernel.skeleton, kernel.factory, kernel.proof) == ("", "", None)
    assert kernel.draft is not None
    assert "T.prim_func" in kernel.draft.text
    difference = kernel.draft.difference
    assert difference is not None
    assert difference.source != difference.skeleton
    line = ported.text.split("\n")[difference.line - 1]
    assert "tl.store" in line
    assert difference.tensor in line
    assert "0 of 1 kernel written in TileLang, 1 draft;" in ported.summary
    assert "it differs from its source: " in str(ported)
    assert "A draft: it differs from its source" in ported._repr_html_()
    assert ported.proof is None
    with pytest.raises(UsageError, match="no kernel of the source is written, but there is 1 draft"):
        _ = ported.skeleton
    with pytest.raises(UsageError, match="1 draft"):
        ttx.explore(ported)


def test_the_first_element_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are those of NumPy, for the inputs that the proof says."""
    rewrite("y[by * block, 0]", "y[0, 0]", monkeypatch)
    (kernel,) = ttx.port(SOFTMAX).kernels
    assert kernel.draft is not None
    difference = kernel.draft.difference
    assert difference is not None
    rows, columns = difference.sizes["rows"], difference.sizes["columns"]
    assert difference.index < (rows, columns)
    assert 0 < difference.source < 1
    assert f"y[{difference.index[0]}, {difference.index[1]}] is {difference.source:.6g} in the source" in str(
        difference
    )


LAUNCHED = {
    "blocks of a persistent grid": (
        HEAD + """
def softmax(y, x, x_stride, y_stride, n_rows, n_cols, B: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        i = tl.arange(0, B)
        v = tl.load(x + row * x_stride + i, mask=i < n_cols, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(y + row * y_stride + i, e / tl.sum(e, axis=0), mask=i < n_cols)
""",
        {"n_rows": "rows", "n_cols": "columns"},
    ),
    "a constant that a decorator computes": (
        HEAD.replace("@triton.jit", "@triton.heuristics({'EVEN': lambda a: a['n'] % a['B'] == 0})\n@triton.jit") + """
def doubled(x, y, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(y + i, tl.load(x + i) * 2.0)
    else:
        tl.store(y + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)
""",
        {},
    ),
    "blocks in one number": (
        GEMM.replace("tl.program_id(0)", "tl.program_id(0) // tl.cdiv(N, BN)").replace(
            "tl.program_id(1)", "tl.program_id(0) % tl.cdiv(N, BN)"
        ),
        {"M": "rows", "N": "columns", "K": "depth", "sam": "depth", "sbk": "columns"},
    ),
    "heads of several batches": (
        ATTENTION.replace("sh, sm", "sz, H, sh, sm").replace(
            "tl.program_id(1) * sh", "tl.program_id(1) // H * sz + tl.program_id(1) % H * sh"
        ),
        {"n": "length", "sm": "dim"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHED)
def test_parameters_get_what_the_skeleton_means(name: str) -> None:
    source, meanings = LAUNCHED[name]
    (kernel,) = ttx.port(source).kernels
    assert kernel.proof is not None, kernel.draft
    sizes = kernel.proof.sizes[0]
    assert {parameter: kernel.proof.launch[parameter] for parameter in meanings} == {
        parameter: sizes[size] for parameter, size in meanings.items()
    }


def attention(*changes: tuple[str, str]) -> str:
    source = ATTENTION
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    return source


SCORES = "s = tl.dot(q, k) * scale"
SEVERAL_PLACES = "it loads x from several places"
# Each with why it is refused.
VARIANTS = {
    "shared heads of keys alone": (
        attention(("K + at", "K + tl.program_id(1) // 4 * sh")),
        "its keys and values do not have the same heads",
    ),
    "shared heads of all": (
        attention(("at = tl.program_id(1) * sh", "at = tl.program_id(1) // 4 * sh")),
        "are all blocks, each once",
    ),
    "bias": (
        attention((SCORES, f"{SCORES} - 0.5 * (m[:, None] - j[None, :])")),
        "what is added to its scores is not made of parameters, and of rows and keys",
    ),
    "a skipped block": (attention(("range(0, n, BN)", "range(BN, n, BN)")), "the range of a loop"),
    "softmax plus one": (attention(("acc / total[:, None]", "acc / (total[:, None] + 1.0)")), "its sum of weights"),
    "no diagonal block": (
        attention(("range(0, n, BN)", "range(0, tl.program_id(0) * BM, BN)")),
        "the range of a loop",
    ),
    "repeated positions": (
        ROPE.replace("half, B", "half, seq, B").replace("(c + at", "(c + tl.program_id(0) % seq * step"),
        SEVERAL_PLACES,
    ),
    "halved positions": (
        ROPE.replace("(c + at", "(c + tl.program_id(0) // 2 * step").replace(
            "(s + at", "(s + tl.program_id(0) // 2 * step"
        ),
        SEVERAL_PLACES,
    ),
    "no positions": (ROPE.replace("(c + at", "(c").replace("(s + at", "(s"), SEVERAL_PLACES),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_not_written_as_what_they_vary(name: str) -> None:
    source, reason = VARIANTS[name]
    (kernel,) = ttx.port(source).kernels
    assert kernel.skeleton == ""
    assert reason in kernel.outside


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (ADD.replace("factor * a", "tl.math.unheard_of(a)"), "unheard_of"),
        (ADD.replace("i < n", "i < 64"), "elements that a mask chooses"),
    ],
)
def test_what_is_not_accounted_for_is_not_written(source: str, reason: str) -> None:
    (kernel,) = ttx.port(source).kernels
    assert kernel.skeleton == ""
    assert reason in kernel.outside + (kernel.draft.reason if kernel.draft else "")


@pytest.mark.parametrize(
    "source",
    [
        ADD.replace("tl.store(out_p + i", "tl.store(out_p + i + (n // 64 - n // 64)"),
        ADD.replace("n, B", "n, extra, B").replace("= tl.load(a_p", "= extra - extra + tl.load(a_p"),
    ],
)
def test_what_changes_nothing_is_proved(source: str) -> None:
    assert source != ADD
    (kernel,) = ttx.port(source).kernels
    assert kernel.proof is not None


def test_a_proof_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = threading.Event()

    def cancelling(kernel: ForeignKernel) -> Any:
        family = family_of(kernel)
        cancel.set()
        return family

    monkeypatch.setattr(porting, "family_of", cancelling)
    with pytest.raises(Cancelled):
        ttx.port(SOFTMAX, cancel=cancel)


def test_without_running_there_are_drafts() -> None:
    ported = ttx.port(SOFTMAX, prove=False)
    (kernel,) = ported.kernels
    assert kernel.draft is not None
    assert kernel.draft.reason == "the source was not run"
    assert kernel.draft.text == ttx.port(SOFTMAX).skeleton
    with pytest.raises(UsageError, match="prove"):
        ttx.port(SOFTMAX, prove="yes")  # pyright: ignore[reportArgumentType]


def test_scalars_without_a_value_must_be_given() -> None:
    ported = ttx.port(LAYER_NORM)
    with pytest.raises(UsageError, match="needs eps"):
        ttx.explore(ported)
    assert ttx.explore(ported, rows=32, columns=64, eps=1e-5).run().passed


@pytest.mark.parametrize(("word", "dtype"), [("float", "float32"), ("half", "float16"), ("__nv_bfloat16", "bfloat16")])
def test_dtypes_are_those_of_the_source(word: str, dtype: str) -> None:
    readable(SAXPY)
    (kernel,) = read(SAXPY.replace("float *", f"{word} *")).kernels
    assert draft_of(kernel).partition('dtype="')[2].partition('"')[0] == dtype


# Bodies of a kernel that stores to y, and what they store for x, z, the indices i, and n = 11, program by program.
BODIES: dict[str, tuple[str, Callable[[Array, Array, Array], Array]]] = {
    "division toward zero": ("tl.store(y + i, (i - 5) // 3)", lambda x, z, i: np.trunc((i - 5) / 3)),
    "remainder with the sign of the first": ("tl.store(y + i, (i - 5) % 3)", lambda x, z, i: np.fmod(i - 5, 3)),
    "bytes wrap around": ("tl.store(y + i, (i * 70).to(tl.int8))", lambda x, z, i: (i * 70 + 128) % 256 - 128),
    "half precision": (
        "h = tl.load(x + i).to(tl.float16)\n    tl.store(y + i, h * 3.1)",
        lambda x, z, i: (x.astype(np.float16) * np.float16(3.1)).astype(np.float32),
    ),
    "a mask with another value": (
        "tl.store(y + i, tl.load(x + i, mask=i < n, other=7.0))", lambda x, z, i: np.where(i < 11, x, 7),
    ),
    "a product": (
        "w = tl.dot(tl.load(x + i)[:, None] + tl.zeros((1, 8), tl.float32), tl.load(z + i)[None, :] * tl.full((8, 1), "
        "0.125, tl.float32))\n    tl.store(y + i, tl.sum(w, axis=1))",
        lambda x, z, i: x * z.reshape(2, 8).sum(1).repeat(8),
    ),
    "the place of the maximum": (
        "tl.store(y + i, tl.argmax(tl.load(x + i), axis=0))", lambda x, z, i: x.reshape(2, 8).argmax(1).repeat(8),
    ),
    "a sum as it grows": (
        "tl.store(y + i, tl.cumsum(tl.load(x + i), axis=0))", lambda x, z, i: x.reshape(2, 8).cumsum(1).reshape(N),
    ),
    "a loop and a choice": (
        "t = 0.0\n    for j in range(2, n, 3):\n        if j % 2 == 0:\n            t += j\n        else:\n"
        "            t -= 1.0\n    tl.store(y + i, t)",
        lambda x, z, i: np.full(N, 2 - 1 + 8.0),
    ),
    "functions of the file": ("a, b = pair(tl.load(x + i), C)\n    tl.store(y + i, a * b)", lambda x, z, i: x * x - 9),
    "one bit": ("tl.store(y + i, (i > 3) + (i > 5))", lambda x, z, i: (i > 3) ^ (i > 5)),
    "atomic addition": ("tl.atomic_add(y + i % 2, 1.0)", lambda x, z, i: np.where(i < 2, 8, 0)),
}  # fmt: skip
MODULE = (
    "import triton\nimport triton.language as tl\n\nC: tl.constexpr = 3\n\n\n@triton.jit\ndef pair(a, b):\n"
    "    return a + b, a - b\n\n\n@triton.jit\ndef k(x, z, y, n, B: tl.constexpr):\n"
    "    i = tl.program_id(0) * B + tl.arange(0, B)\n    "
)


def launched(body: str) -> tuple[Array, Array, Array]:
    draw = np.random.default_rng(1)
    x, z = (draw.normal(size=N).astype(np.float32) for _ in range(2))
    arguments = {"x": x, "z": z, "y": np.zeros(N, np.float32), "n": 11, "B": 8}
    run = triton_runner(MODULE + body, "k").run(Launch((2,)), arguments)
    assert not run.outside
    return x, z, run.arrays["y"]


@pytest.mark.parametrize("name", BODIES)
def test_triton_is_run_as_numpy_computes(name: str) -> None:
    body, formula = BODIES[name]
    x, z, result = launched(body)
    np.testing.assert_allclose(result, formula(x, z, np.arange(N)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("tl.store(y + i, tl.rand(1, i))", r"tl.rand \(line 15\)"), ("import os", r"`import os` \(line 15\)"),
        ("tl.store(y + i, open('/etc/passwd'))", r"open.* \(line 15\)"), ("while True:\n        pass", "more than"),
        ("tl.store(y + i, tl.load(x + i).__class__)", "__class__"), ("tl.store(y + i, unknown)", "unknown"),
        ("tl.store(y + i, tl.load(x + i)[0])", "line 15"), ("tl.store(y + i, n if i > 3 else 2)", "a whole block"),
        ("y.store(1)", "store"), ("tl.store(y + i, k(x, z, y, n, B))", "calls inside of each other"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_run(body: str, reason: str) -> None:
    with pytest.raises(CannotRun, match=reason):
        launched(body)


def test_accesses_outside_are_reported() -> None:
    arguments = {
        "x": np.ones(N, np.float32),
        "z": np.ones(N, np.float32),
        "y": np.zeros(10, np.float32),
        "n": 1,
        "B": 8,
    }
    run = triton_runner(f"{MODULE}tl.store(y + i, tl.load(x + i + 3))", "k").run(Launch((2,)), arguments)
    assert [(access.kind, access.tensor, access.index, access.line) for access in run.outside] == [
        ("read", "x", 16, 15), ("write", "y", 10, 15),
    ]  # fmt: skip
    np.testing.assert_array_equal(run.arrays["y"], np.ones(10))


def test_races_are_reported() -> None:
    arguments = {"x": np.arange(N, dtype=np.float32), "z": np.ones(N), "y": np.zeros(N, np.float32), "n": 1, "B": 8}
    run = triton_runner(f"{MODULE}tl.store(y + i % 8, tl.load(x + i))", "k").run(Launch((2,)), arguments)
    assert "several programs store different values" in run.races["y"]
    run = triton_runner(f"{MODULE}tl.store(y + i, tl.load(x + i))", "k").run(Launch((2,)), arguments)
    assert not run.races


def test_head_of_the_module_is_not_executed() -> None:
    assert HEAD.startswith("import triton")
    assert ttx.port(f"raise SystemExit\n{SOFTMAX}").proof is not None


def test_a_kernel_may_come_without_its_imports() -> None:
    """`tl` and `triton` are what everybody calls them; a name that is not known is why there is no proof."""
    text = """
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
    assert ttx.port(text).written.proof is not None
    with pytest.raises(CannotRun, match="lang, which is not known") as raised:
        triton_runner(text.replace("tl.constexpr", "lang.constexpr"), "add").run(
            Launch((1,)), {"x_ptr": np.ones(4, np.float32), "y_ptr": np.ones(4, np.float32),
                           "out_ptr": np.zeros(4, np.float32), "n": 4, "BLOCK": 4}
        )  # fmt: skip
    assert raised.value.line == 3
