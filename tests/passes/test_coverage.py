# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Which tensors a kernel stores completely: those are outputs. Of the others the rest stays, and is an input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.said import said
from ttexplore.errors import KernelError, UsageError
from ttexplore.passes.launches.tensor_roles import kept_parts, tensor_roles

HEAD = """import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor(({rows}, 64), "float32"), N: T.Tensor((8,), "int32"), C: T.Tensor(({rows}, 64), "float32")):
"""
COPY = "T.copy(A[{0}], a); T.copy(a, C[{0}])"


def explored(tmp_path: Path, grid: str, body: str, rows: int | str = 128) -> ttx.Exploration:
    """The kernel with a launch of this grid, whose body has a block `a` of a tile."""
    file = tmp_path / "kernel.py"
    size = 'm = T.dynamic("m")\n' if isinstance(rows, str) else ""
    head = HEAD.format(rows=rows).replace("@T", f"{size}@T", 1)
    lines = [f"    with T.Kernel({grid}:", '        a = T.alloc_shared((32, 32), "float32")']
    file.write_text("\n".join([head, *lines, *(f"        {line}" for line in body.splitlines())]) + "\n")
    return ttx.explore(f"{file}::kernel")


def role(exploration: ttx.Exploration) -> str:
    assert exploration.error is None, str(exploration.error)
    layout = next(one for one in exploration.plan.layouts if one.name == "C")
    assert layout.role == exploration._roles["C"]
    return layout.role


AT = COPY.format("by * 32, bx * 32")
EACH = "for i, j in T.Parallel(32, 32):\n    "
FULL = {
    "each block": ("2, 4) as (bx, by)", AT, 128),
    "clipped": ("2, T.ceildiv(70, 32)) as (bx, by)", AT, 70),
    "turned": ("2, 4) as (bx, by)", COPY.format("96 - by * 32, (1 - bx) * 32"), 128),
    "one index for two axes": ("8) as b", COPY.format("b // 2 * 32, b % 2 * 32"), 128),
    "swizzled": ("8) as b", COPY.format("(b % 4 ^ b // 4) * 32, b // 4 * 32"), 128),
    "more blocks than tiles": ("2, 9) as (bx, by)", f"if by < 4:\n    {AT}", 128),
    "a guard that always holds": ("2, 4) as (bx, by)", f"if by * 32 < 128:\n    {AT}", 128),
    "both sides": ("2, 4) as (bx, by)", f"if N[by] > 0:\n    {AT}\nelse:\n    {AT}", 128),
    "sides that fit together": ("2, 4) as (bx, by)", f"if by % 2 == 0:\n    {AT}\nelse:\n    {AT}", 128),
    "sides that elements decide, of any size": (
        "2, T.ceildiv(m, 32)) as (bx, by)", f"{EACH}if i - by * 32 >= j % 3 + bx:\n        "
        "C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j]\n    else:\n        "
        "C[by * 32 + i, bx * 32 + j] = 1.0", "m"),
    "two stores": ("2, 4) as (bx, by)", f"if by > 1:\n    {AT}\nif not (by > 1):\n    {AT}", 128),
    "a loop over columns": ("4) as by", f"for bx in T.Pipelined(2, num_stages=2):\n    {AT}", 128),
    "persistent": ("3) as b", f"for by, bx in T.Persistent([4, 2], 3, b):\n    {AT}", 128),
    "waves": ("3) as b", "for w in T.serial(3):\n    p = w * 3 + b\n    if p < 8:\n        "
              + COPY.format("p // 2 * 32, p % 2 * 32"), 128),
    "until there are no more": ("3) as b", 'p = T.alloc_var("int32")\np = b\nwhile p < 8:\n    q = p\n    '
                                + COPY.format("q // 2 * 32, q % 2 * 32") + "\n    p = q + 3", 128),
    "elements": ("2, 3) as (bx, by)", f"{EACH}C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j]", 70),
    "elements within": ("2, 3) as (bx, by)", f"{EACH}if by * 32 + i < 70:\n        "
                        "C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j]", 70),
    "any size": ("2, T.ceildiv(m, 32)) as (bx, by)", AT, "m"),
    "elements of any size": ("2, T.ceildiv(m, 32)) as (bx, by)", f"{EACH}if by * 32 + i < m:\n        "
                             "C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j]", "m"),
    "blocks within any size": ("2, T.ceildiv(m, 32)) as (bx, by)", f"if by * 32 < m:\n    {AT}", "m"),
    "loops over any size": ("2) as bx", f"for by in range(T.ceildiv(m, 32)):\n    {AT}", "m"),
    "a group of threads": ("2, 4, threads=256) as (bx, by)",
                           f"tx = T.get_thread_binding()\nif tx < 128:\n    {AT}", 128),
    "a fill": ("1) as b", "T.fill(C, 2)", 70),
}  # fmt: skip


@pytest.mark.parametrize("what", FULL)
def test_what_is_stored_completely_is_an_output(tmp_path: Path, what: str) -> None:
    exploration = explored(tmp_path, *FULL[what])
    assert role(exploration) == "output"
    assert not exploration.plan.notes_on_inputs


PART = {
    "a block too few": ("2, 3) as (bx, by)", AT, 128, "nothing is stored to C[96, 0]"),
    "a row too few": ("2, 4) as (bx, by)", AT, 129, "nothing is stored to C[128, 0]"),
    "the diagonal": ("2) as b", COPY.format("b * 32, b * 32"), 64, "nothing is stored to C[0, 32]"),
    "each second block": ("2, 4) as (bx, by)", f"if (bx + by) % 2 == 1:\n    {AT}", 128,
                          "nothing is stored to C[0, 0]"),
    "one side": ("2, 4) as (bx, by)", f"if N[by] > 0:\n    {AT}", 128,
                 "whether it is stored in line 8 is only known when the kernel runs"),
    "sides that differ": ("4) as by", "if N[by] > 0:\n    " + COPY.format("by * 32, 0") + "\nelse:\n    "
                          + COPY.format("by * 32, 32"), 128,
                          "whether it is stored in line 8 is only known when the kernel runs"),
    "at places of a tensor": ("2, 4) as (bx, by)", COPY.format("N[by] * 32, bx * 32"), 128,
                              "where it is stored in line 7 is only known when the kernel runs"),
    "as many as a tensor says": ("2) as bx", f"for by in range(N[bx]):\n    {AT}", 128,
                                 "how often it is stored in line 8 is only known when the kernel runs"),
    "half of any size": ("1, T.ceildiv(m, 32)) as (bx, by)", AT, "m", "it is not proved that all of it is stored"),
    "one block of any size": ("2) as bx", COPY.format("0, bx * 32"), "m", "it is not proved that all of it is stored"),
    "no turn": ("2, 4) as (bx, by)", f"if bx > 0:\n    {AT}\nfor t in range(T.min(by, 0)):\n    {AT}", 128,
                "nothing is stored to C[0, 0]"),
    "a triangle": ("4) as by", f"for bx in range(T.min(by, 2)):\n    {AT}", 128, "nothing is stored to C[0, 0]"),
    "with a distance": ("4) as by", "T.copy(A[by * 32, 0], a); T.copy(a, C[by * 32, 0])", 128,
                        "nothing is stored to C[0, 32]"),
}  # fmt: skip


@pytest.mark.parametrize("what", PART)
def test_what_is_stored_in_part_is_an_input_too(tmp_path: Path, what: str) -> None:
    grid, body, rows, reason = PART[what]
    exploration = explored(tmp_path, grid, body, rows)
    assert role(exploration) == "inout"
    assert exploration.plan.notes_on_inputs == {
        "C": f"C is an input, too: {reason}. What is not stored keeps what it held before"
    }
    # Whoever lowers it again finds the same.
    again = exploration.fork(policy="strided")
    assert again.plan.notes_on_inputs == exploration.plan.notes_on_inputs
    assert tensor_roles(exploration.kernel.function) == exploration._roles
    assert kept_parts(exploration.kernel.function) == {"C": reason}


def cache(slots: int = 8) -> Any:
    """New rows of some sequences go to their places in a cache."""

    @T.prim_func
    def update(
        New: T.Tensor((2, 32, 32), "float32"), Pos: T.Tensor((2,), "int32"),
        Cache: T.Tensor((slots, 32, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as b:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(New[b, 0, 0], a)
            T.copy(a, Cache[Pos[b], 0, 0])

    return update


def token() -> Any:
    """One row of a tile in each head."""

    @T.prim_func
    def update(
        New: T.Tensor((4, 64), "bfloat16"), Pos: T.Tensor((1,), "int32"), Cache: T.Tensor((4, 96, 64), "bfloat16")
    ):  # fmt: skip
        with T.Kernel(4) as b:
            for j in T.Parallel(64):
                Cache[b, Pos[0], j] = New[b, j]

    return update


def corner() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((5, 7), "int32"), C: T.Tensor((70, 50), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(5, 7):
                C[40 + i, 30 + j] = A[i, j] * 2

    return kernel


def vector() -> Any:
    """Cores that share a tile."""

    @T.prim_func
    def kernel(A: T.Tensor((48,), "float32"), C: T.Tensor((100,), "float32")):
        with T.Kernel(3) as b:
            a = T.alloc_shared((16,), "float32")
            T.copy(A[b * 16], a)
            T.copy(a, C[b * 32])

    return kernel


def fills() -> Any:
    @T.prim_func
    def kernel(C: T.Tensor((96, 64), "uint8")):
        with T.Kernel(2) as b:
            T.fill(C[b * 64 : b * 64 + 32, :], 7)

    return kernel


def rows() -> Any:
    """Rows that begin within a tile."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), C: T.Tensor((96, 64), "float32")):
        with T.Kernel(2) as b:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[b * 32, 0], a)
            T.copy(a, C[b * 32 + 8, 0])

    return kernel


def half(dtype: str = "float32") -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((256, 32), dtype), C: T.Tensor((256, 32), dtype)):
        with T.Kernel(4) as b:
            a = T.alloc_shared((32, 32), dtype)
            T.copy(A[b * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] * 2
            T.copy(a, C[b * 32, 0])

    return kernel


def sized() -> Any:
    m = T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((m, 64), "float32"), C: T.Tensor((m, 64), "float32")):
        with T.Kernel(T.ceildiv(m, 32)) as b:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[b * 32, 32], a)
            T.copy(a, C[b * 32, 0])

    return kernel


def launches() -> Any:
    """B is stored in two halves, C in one; the second launch reads what the first has left of D."""
    shape = (64, 32)

    @T.prim_func
    def kernel(
        A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32"), C: T.Tensor(shape, "float32"),
        D: T.Tensor(shape, "float32"), E: T.Tensor(shape, "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[0, 0], a)
            T.copy(a, B[0, 0])
            T.copy(a, C[0, 0])
            T.copy(a, D[0, 0])
        with T.Kernel(2) as b:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(D[b * 32, 0], a)
            T.copy(a, E[b * 32, 0])
            if b == 1:
                T.copy(A[b * 32, 0], a)
                T.copy(a, B[b * 32, 0])

    return kernel


SHARDED = {"layouts": {name: {"memory": "L1", "shard": "height"} for name in "AC"}, "policy": "match_shard",
           "match": "C", "mode": "local_shard", "cores": (8, 1)}  # fmt: skip
POS, TOKEN = np.array([5, 2], np.int32), np.array([45], np.int32)


def put(old: Any, place: Any, new: Any) -> Any:
    made = np.array(old, np.float64)
    made[place] = new
    return made


CONTENTS: dict[str, tuple[Any, dict[str, Any], dict[str, Any], Any]] = {
    "cache": (cache(), {}, {"Pos": POS}, lambda New, Pos, Cache: [put(Cache, Pos, New)]),
    "token": (token(), {}, {"Pos": TOKEN}, lambda New, Pos, Cache: [put(Cache, np.s_[:, Pos[0]], New)]),
    "token by rows": (token(), {"layouts": {"Cache": {"page": "row"}}}, {"Pos": TOKEN},
                      lambda New, Pos, Cache: [put(Cache, np.s_[:, Pos[0]], New)]),
    "corner": (corner(), {}, {}, lambda A, C: [put(C, np.s_[40:45, 30:37], 2 * A)]),
    "vector": (vector(), {}, {}, lambda A, C: [
        put(C, [one for b in range(3) for one in range(32 * b, 32 * b + 16)], A)]),
    "fills": (fills(), {}, {}, lambda C: [put(C, np.r_[0:32, 64:96], 7)]),
    "rows": (rows(), {}, {}, lambda A, C: [put(C, np.s_[8:72], A)]),
    "rows by rows": (rows(), {"layouts": {"C": {"page": "row"}}}, {}, lambda A, C: [put(C, np.s_[8:72], A)]),
    "half": (half(), {}, {}, lambda A, C: [put(C, np.s_[:128], 2 * A[:128])]),
    "half of shards": (half(), SHARDED, {}, lambda A, C: [put(C, np.s_[:128], 2 * A[:128])]),
    "half of block floats": (
        half("bfloat16"), {"layouts": {"C": {"dtype": "Bfp8_b"}}},
        {"A": np.full((256, 32), 0.5), "C": np.arange(256)[:, None] // 32 * np.ones((1, 32))},
        lambda A, C: [put(C, np.s_[:128], 1)]),
    "sized": (sized(), {}, {name: np.random.default_rng(3).random((70, 64), np.float32) for name in "AC"},
              lambda A, C: [put(C, np.s_[:, :32], A[:, 32:])]),
    "launches": (launches(), {}, {}, lambda A, C, D: [
        A, put(C, np.s_[:32], A[:32]), put(D, np.s_[:32], A[:32]), put(D, np.s_[:32], A[:32])]),
}  # fmt: skip


@pytest.mark.parametrize("what", CONTENTS)
def test_what_is_not_stored_is_what_the_caller_passes(what: str) -> None:
    kernel, options, given, expected = CONTENTS[what]
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    if what == "sized":
        exploration = exploration.with_sizes(m=70)
    names = [one.name for one in exploration._tensors(("input", "inout"))]
    inputs = dict(zip(names, exploration.inputs(), strict=True)) | given
    before = {name: array.copy() for name, array in inputs.items()}
    want = expected(
        **{name: np.asarray(array, np.float64) if name != "Pos" else array for name, array in inputs.items()}
    )
    check = exploration.check(inputs)
    assert check, str(check)
    for backend in ("reference", "interpreter", "emulator"):
        run = exploration.run(inputs, backend=backend)
        assert run.passed, f"{backend}: {run.message}"
        for output, one in zip(run.outputs, want, strict=True):
            np.testing.assert_array_equal(np.asarray(output, np.float64), one, err_msg=backend)
    for name, array in before.items():
        np.testing.assert_array_equal(inputs[name], array)


def test_two_cores_on_one_tile_leave_each_other_alone() -> None:
    exploration = ttx.explore(vector(), options={"cores": (3, 1)})
    assert exploration.plan.partition is not None
    assert len(exploration.plan.partition.cores) == 3
    a, c = exploration.inputs()
    want = c.copy()
    for b in range(3):
        want[32 * b :][:16] = a[16 * b :][:16]
    np.testing.assert_array_equal(exploration.run([a, c]).outputs[0], want)


def test_the_message_names_the_tensor_that_is_missing() -> None:
    exploration = ttx.explore(cache())
    new, pos, _ = exploration.inputs()
    with pytest.raises(UsageError) as caught:
        exploration.run([new, pos])
    assert caught.value.message == "the number of inputs is 2, but the kernel takes 3"
    assert caught.value.hint is not None
    tensors, reason = caught.value.hint.split("; ")
    assert tensors.endswith("Cache float32 (8, 32, 32)")
    line = exploration.kernel.first_line + 8
    assert reason == (
        f"Cache is an input, too: where it is stored in line {line} is only known when the kernel runs. What is not "
        "stored keeps what it held before"
    )
    with pytest.raises(UsageError, match="input Cache is missing"):
        exploration.run({"New": new, "Pos": pos})


def test_a_saved_kernel_takes_the_old_contents(tmp_path: Path) -> None:
    exploration = ttx.explore(cache())
    saved = ttx.load(exploration.save(tmp_path / "cache.ttx"))
    inputs = [one.copy() for one in exploration.inputs()]
    inputs[1][:] = POS
    np.testing.assert_array_equal(saved.run(inputs).outputs[0], put(inputs[2], POS, inputs[0]))
    with pytest.raises(UsageError) as caught:
        saved.run(inputs[:2])
    assert "Cache is an input, too" in str(caught.value)


def test_the_exported_host_uploads_the_old_contents() -> None:
    files = ttx.explore(cache()).files
    assert "inputs, in order: New (2, 32, 32), Pos (2,), Cache (8, 32, 32)" in files["main.cpp"].text


def passed(first: str, second: str, count: int = 2) -> Any:
    """A tensor of T.alloc_global that one launch stores, and another one reads."""
    scope = {"T": T}

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), N: T.Tensor((2,), "int32"), C: T.Tensor((64, 32), "float32")):
        M = T.alloc_global((64, 32), "float32")
        with T.Kernel(1) as b:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[0, 0], a)
            T.copy(a, M[eval(first, scope, {"N": N}), 0])
        with T.Kernel(count) as b:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(M[eval(second, scope, {"b": b, "N": N}), 0], a)
            T.copy(a, C[b * 32, 0])

    return kernel


def test_a_part_that_no_launch_stores_is_not_read() -> None:
    with pytest.raises(KernelError) as caught:
        ttx.explore(passed("0", "b * 32"))
    assert caught.value.code == "TTX-K006"
    assert caught.value.message == "M[32, 0] is read here, and no launch before this one has stored anything there"
    assert caught.value.hint is not None
    assert caught.value.span is not None
    assert (
        Path(__file__).read_text().splitlines()[caught.value.span.line - 1].strip().startswith("T.copy(M[eval(second")
    )


def test_a_part_that_may_not_be_stored_holds_zeros() -> None:
    exploration = ttx.explore(passed("N[0] * 32", "b * 32"))
    line = exploration.kernel.first_line + 6
    note = (
        f"M may be read where no launch has stored anything (where it is stored in line {line} is only known when the "
        "kernel runs): it holds zeros there"
    )
    assert note in said(exploration.launches[1].plan)
    inputs = [one.copy() for one in exploration.inputs()]
    assert len(inputs) == 2
    inputs[1][:] = 1
    for backend in ("reference", "interpreter", "emulator"):
        run = exploration.run(inputs, backend=backend)
        assert run.passed, run.message
        np.testing.assert_array_equal(run.outputs[0], np.concatenate([np.zeros((32, 32)), inputs[0][:32]]))


@pytest.mark.parametrize(("first", "second"), [("32", "32 + b"), ("0", "N[1]")])
def test_what_a_launch_stores_may_be_read(first: str, second: str) -> None:
    exploration = ttx.explore(passed(first, second, 1))
    is_known = "N" not in second
    assert any("zeros" in note for note in said(exploration.launches[1].plan)) != is_known
    assert exploration._roles["C"] == "inout"
    inputs = [one.copy() for one in exploration.inputs()]
    inputs[1][:] = 0
    run = exploration.run(inputs)
    assert run.passed, run.message
    np.testing.assert_array_equal(run.outputs[0][:32], inputs[0][:32])
    np.testing.assert_array_equal(run.outputs[0][32:], inputs[2][32:])


def test_a_store_that_never_happens_keeps_all() -> None:
    """A0 finds that, and drops the branch; the tensor is an output all the same, as it is for the kernel as written."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), S: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1) as by:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            if by > 5:
                T.copy(a, S)
            T.copy(a, C)

    exploration = ttx.explore(kernel)
    a, s = np.full((32, 32), 3, np.float32), np.full((32, 32), 4, np.float32)
    assert exploration.check([a, s])
    for backend in ("reference", "interpreter", "emulator"):
        run = exploration.run([a, s], backend=backend)
        assert run.passed, run.message
        for output, wanted in zip(run.outputs, (s, a), strict=True):
            np.testing.assert_array_equal(output, wanted)
