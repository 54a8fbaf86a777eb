"""Index expressions as words: C++ and Python of any expression give what the expression is, whatever comes between."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tvm import tirx

import ttexplore as ttx
import ttexplore.language as T
from tests.fuzz.indices import Drawer, value
from ttexplore.errors import Unsupported
from ttexplore.ir.arithmetic import words
from ttexplore.ir.arithmetic.index import Expression
from ttexplore.ir.arithmetic.words import PYTHON_FUNCTIONS, Words, as_signed, cpp, functions_of, int32_word, python
from ttexplore.ir.build import loop
from ttexplore.ir.kernel import FunctionReader, Loop
from ttexplore.ops.functions import FUNCTIONS

# A block index, and a loop variable that starts below 0.
RANGES = {"bx": range(5), "k": range(-4, 9)}


VARIABLES = {name: tirx.Var(name, "int32") for name in RANGES}
READER = FunctionReader()


def expression(text: str) -> Expression:
    return READER.expression(eval(text, {"T": T}, VARIABLES))


def counted(variable: Any, low: Any, extent: Any) -> Loop:
    empty = loop(variable, extent, [])
    return READER.loop(
        tirx.For(variable, low, empty.extent, empty.kind, empty.body), (), frozenset(), frozenset()
    )  # fmt: skip


def known_words() -> Words:
    made = Words()
    for name, values in RANGES.items():
        made.loop(counted(VARIABLES[name], tirx.const(values.start, "int32"), len(values)))
    return made


def word_of(text: str) -> words.Word:
    return known_words().word(expression(text))


def cpp_of(text: str) -> str:
    return cpp(word_of(text), str)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bx * 2 + 1", "bx * 2 + 1"),
        ("bx // 2", "bx / 2"),
        ("(bx + 2) % 3 * 4", "(bx + 2) % 3 * 4"),
        ("(bx - 3) // 2", "floor_div(bx - 3, 2)"),
        ("(k + 4) % 3", "static_cast<uint32_t>(k + 4) % 3"),
        ("k % 3", "floor_mod(k, 3)"),
        ("T.truncdiv(k, 3)", "k / 3"),
        ("T.max(bx - 2, 0)", "greater(bx - 2, 0)"),
        ("T.min(bx, 3)", "bx < 3 ? bx : 3"),
        ("T.min(bx, 3) * 2", "(bx < 3 ? bx : 3) * 2"),
        ("T.if_then_else(bx > 1, 3, 1)", "bx > 1 ? 3u : 1u"),
        ("T.if_then_else(k < bx, k, bx)", "k < static_cast<int32_t>(bx) ? static_cast<uint32_t>(k) : bx"),
        ("(bx & 2) * 32", "(bx & 2) * 32"),
        ("(k + bx & 3) + 1", "((k + bx) & 3) + 1"),
        ("bx << 3", "bx << 3"),
        ("k << 3", "static_cast<uint32_t>(k) << 3"),
        ("k >> 1", "k >> 1"),
        ("(bx - 2) >> 1", "static_cast<int32_t>(bx - 2) >> 1"),
        ("~bx", "~bx"),
        ("bx - (k - 1)", "bx - (k - 1)"),
    ],
)
def test_text(text: str, wanted: str) -> None:
    """Where nothing is negative no conversion is there, and parentheses only where C++ needs them."""
    assert cpp_of(text).replace("1 < bx", "bx > 1") == wanted


def drawn(count: int, seed: int) -> list[str]:
    drawer = Drawer(Random(seed))
    return [drawer.expression({"bx": 4, "k": 8}, drawer.random.randint(1, 5))[0] for _ in range(count)]


def test_cpp_and_python_give_what_the_expression_is(tmp_path: Path) -> None:
    """400 random expressions, compiled by the host's compiler without a warning; overflow of signed numbers traps."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    texts = [text for text in drawn(400, 1) if "bx" in text or "k" in text]
    made = known_words()
    found = [as_signed(made.word(expression(f"({text}) + 0 * bx"))) for text in texts]
    loops = "".join(
        f"for ({kind} {name} = {RANGES[name].start}; {name} < {RANGES[name].stop}; ++{name}) "
        for name, kind in (("bx", "uint32_t"), ("k", "int32_t"))
    )
    called = set[str]().union(*(functions_of(word) for word in found))
    assert called == {"floor_div", "floor_mod", "lesser", "greater"}
    program = tmp_path / "words.cpp"
    program.write_text(
        "\n".join(
            [
                "#include <cstdint>", "#include <cstdio>", *(FUNCTIONS[name] for name in sorted(called)),
                "static void show(int32_t number) { std::printf(\"%d\\n\", number); }",
                f"int main() {{ {loops} {{", *(f"show({cpp(word, str)});" for word in found), "} }",
            ]
        )
    )  # fmt: skip
    command = [
        compiler, "-std=c++17", "-Wall", "-Werror", "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero",
        "-fsanitize-undefined-trap-on-error", str(program), "-o", str(tmp_path / "words"),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120)
    lines = subprocess.run([tmp_path / "words"], check=True, capture_output=True, text=True, timeout=60).stdout.split()
    computed = [eval(f"lambda bx, k: {python(word, str)}", dict(PYTHON_FUNCTIONS)) for word in found]
    places = [(bx, k) for bx, k in itertools.product(*RANGES.values())]
    numbers = iter(map(int, lines))
    for bx, k in places:
        for text, function in zip(texts, computed, strict=True):
            wanted = value(text, bx=bx, k=k)
            assert (next(numbers), function(bx, k)) == (wanted, wanted), (text, bx, k)


def test_what_is_never_negative_is_unsigned() -> None:
    made = known_words()
    kinds = {text: made.word(expression(text)).type for text in ("bx + 1", "k", "k + bx", "k * 2", "bx > k")}
    assert kinds == {"bx + 1": "uint32", "k": "int32", "k + bx": "uint32", "k * 2": "int32", "bx > k": "bool"}


def test_a_loop_that_may_end_before_0_counts_in_int32() -> None:
    made = known_words()
    k, zero, bx = tirx.Var("t", "int32"), tirx.const(0, "int32"), VARIABLES["bx"]
    low, end, kind = made.loop(counted(k, zero, bx - 2))
    assert (cpp(low, str), cpp(end, str), kind) == ("0", "static_cast<int32_t>(bx - 2)", "int32")
    low, end, kind = made.loop(counted(k, bx + 1, 3))
    assert (cpp(low, str), cpp(end, str), kind) == ("bx + 1", "bx + 4", "uint32")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("bx // k", "bx // k divides by k, which can be 0", "divide by a positive number"),
        ("bx << k", "shifts by -4 to 8 bits", "shift by 0 to 31 bits"),
        ("T.cast(bx * 0.5, 'int32')", "has no C\\+\\+ form", "index with"),
    ],
)
def test_what_has_no_word(text: str, message: str, hint: str) -> None:
    with pytest.raises(Unsupported, match=message) as caught:
        word_of(text)
    assert hint in caught.value.hint


def test_a_wrong_type_shows_at_the_step_that_makes_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter computes from D3 on as the C++ does: with minima of unsigned words D3 is wrong."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), B: T.Tensor((128, 32), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[T.clamp(bx - 2, 0, 3) * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    assert ttx.explore(kernel).check()

    def unsigned(symbol: str, left: words.Word, right: words.Word, known: Any) -> words.Word:
        parts = tuple(words._converted(part, "uint32") for part in (left, right))
        return words.Word(symbol, "uint32", parts, *known)

    monkeypatch.setattr(words, "_extreme", unsigned)
    check = ttx.explore(kernel).check()
    assert not check
    assert check.first_bad == "lower_cb_intrinsics"


@pytest.mark.parametrize(("number", "wanted"), [(0, 0), (-1, -1), (1 << 31, -(1 << 31)), ((1 << 32) - 1, -1)])
def test_int32_words(number: int, wanted: int) -> None:
    assert int32_word(number) == wanted
