"""Skeletons hold no word of the source but checked names, numbers and comments, whatever the source says."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.porting.test_port import ADD, ATTENTION, CASES, GEMM, ROPE, SAXPY, SOFTMAX, TREE, readable
from ttexplore.errors import UsageError
from ttexplore.porting.foreign import host, skeletons, writing
from ttexplore.porting.foreign.writing import RESERVED, SkeletonNames, comment, is_name

# What ends a string, a comment, a line or an identifier, and what would be executed if it were code.
HOSTILE = (
    '"""', "'''", '"', "'", "\\", "\n", "\r", "\f", "\v", "\x1c", "\x85", "\u2028", "\u2029", "\0", "#", ":", ";", "(",
    ")",
    "{", "}", "{x}", "%s", "*/", "/*", "//", "\u202e", "é", "ﬁ", "μ", "𝐱", "import os", "__import__('os')", "open", "T",
    "range", "print", "lambda: 0", "None", "match", "class", "1e5__import__", "0x_", "1j", "1_000", "@x", "\ud800",
)  # fmt: skip
COMPUTED = """
__global__ void scaled(const float *x, float *y, int n, float s, float t, int u) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = s * 3.f == t ? x[i] * (s * t / 7.f) : x[i] * (s - u); }
}
"""
SOURCES = {
    "computed": COMPUTED,
    "triton": ADD, "softmax": SOFTMAX, "gemm": GEMM, "rope": ROPE, "attention": ATTENTION, "cuda": SAXPY, "tree": TREE,
}  # fmt: skip
# The names of the functions of T that skeletons call.
OF_NUMBERS = {"np.errstate", "np.float32", "np.int32", "float", "bool"}
# A number that is computed before the kernel.
COMPUTES = re.compile(r"\w+ = (bool|float|np\.int32 if)\b[\w .,+*/<>=!&|()-]*", re.ASCII)
CALLED = re.compile(r"T\.(\w+)\(")


def shapes_of(text: str) -> Iterator[str]:
    """What of a skeleton is not as in all skeletons."""
    called = {
        f"T.{one}" for one in CALLED.findall(Path(skeletons.__file__).read_text() + Path(writing.__file__).read_text())
    }
    tree = ast.parse(text)
    match tree.body:
        case [
            *numpy,
            ast.Import([ast.alias("ttexplore.language", "T")]),
            ast.FunctionDef(
                body=[
                    ast.Expr(ast.Constant(str())),
                    *between,
                    ast.FunctionDef("kernel"),
                    ast.Return(ast.Name("kernel")),
                ]
            ),
        ]:
            if [ast.unparse(one) for one in numpy] not in ([], ["import numpy as np"]):
                yield "the modules"
            for one in between:
                match one:
                    case ast.With([ast.withitem(errstate)], numbers):
                        lines = [ast.unparse(errstate), *map(ast.unparse, numbers)]
                        if lines[0] != "np.errstate(all='ignore')" or any(
                            not COMPUTES.fullmatch(line) for line in lines[1:]
                        ):
                            yield "the numbers before the kernel"
                    case _ if ast.unparse(one) not in ("scale = 1.44269504 / dim ** 0.5", "columns = rows"):
                        yield "the lines before the kernel"
                    case _:
                        pass
        case _:
            yield "the module"
    for node in ast.walk(tree):
        match node:
            case ast.Call(function, arguments, keywords):
                if ast.unparse(function) not in called | OF_NUMBERS or not all(one.arg for one in keywords):
                    yield ast.unparse(node)
                if any(isinstance(one, ast.Starred) for one in arguments):
                    yield ast.unparse(node)
            case ast.Attribute(value, name):
                if not (
                    isinstance(value, ast.Name) and value.id in ("T", "np") and name.isidentifier()
                ) or name.startswith("_"):
                    yield ast.unparse(node)
            case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name):
                if not name.isascii() or name.startswith("__"):
                    yield name
            case ast.Constant(str(word)):
                if word not in ("bfloat16", "float32") and not re.fullmatch(r"[\w ,.:/()*-]*", word, re.ASCII):
                    yield word
            case (
                ast.Module() | ast.Import() | ast.alias() | ast.arguments() | ast.Expr() | ast.Constant() | ast.Return()
                | ast.With() | ast.withitem() | ast.For() | ast.Assign() | ast.BinOp() | ast.UnaryOp() | ast.Compare()
                | ast.Tuple() | ast.Subscript() | ast.keyword() | ast.operator() | ast.unaryop() | ast.cmpop()
                | ast.expr_context()
            ):  # fmt: skip
                pass
            case _:
                yield type(node).__name__


def ports(source: str) -> Iterator[str]:
    """The skeletons of a source; none if it is refused."""
    try:
        ported = ttx.port(source, file='a\n"""b', prove=False)
    except UsageError:
        return
    assert "<script" not in ported._repr_html_()
    for one in ported.kernels:
        if one.draft is not None:
            assert is_name(one.draft.factory)
            assert all(line.isascii() for line in one.draft.text.split("\n"))
            yield one.draft.text


@pytest.mark.parametrize("name", CASES)
def test_skeletons_have_one_shape(name: str) -> None:
    readable(CASES[name][0])
    (text,) = ports(CASES[name][0])
    assert list(shapes_of(text)) == []


@pytest.mark.parametrize("name", SOURCES)
def test_hostile_words_stay_outside(name: str) -> None:
    """Each word of a source is followed by, or replaced with, what would end a string, a comment or a line."""
    source = SOURCES[name]
    readable(source)
    draw = random.Random(38)
    words = [one.span() for one in re.finditer(r"\w+|\"[^\"]*\"|'[^']*'|#.*", source)]
    written = 0
    for _ in range(120):
        changed = source
        for begin, end in sorted(draw.sample(words, draw.choice((1, 1, 2))), reverse=True):
            hostile = draw.choice(HOSTILE)
            word = source[begin:end]
            new = draw.choice((hostile, f"{word}{hostile}", f"{word} /*{hostile}*/", f"({word} /*{hostile} */)"))
            if draw.random() < 0.3:
                # Everywhere, as a name that is used consistently.
                changed = re.sub(rf"\b{re.escape(word)}\b", lambda _, new=new: new, changed)
            else:
                changed = changed[:begin] + new + changed[end:]
        for text in ports(changed):
            written += 1
            assert list(shapes_of(text)) == [], changed
    assert written


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_of_functions_and_macros(hostile: str) -> None:
    readable(SAXPY)
    for changed in (
        SAXPY.replace("saxpy", f"(saxpy /*{hostile}*/)"),
        SAXPY.replace("saxpy", f"s{hostile}y"),
        f"#define A {hostile}\n" + SAXPY.replace("a * x", "A * x"),
        f"#define A 2.0f /*{hostile}*/\n" + SAXPY.replace("a * x", "A * x"),
        SAXPY.replace("float a", f"float a{hostile}").replace("a * x", f"a{hostile} * x"),
        SAXPY.replace("0.0f", f"0.0f{hostile}"),
        SAXPY.replace("0.0f", f"1e5{hostile}"),
        SAXPY.replace("float a", f"{hostile} a"),
    ):
        for text in ports(changed):
            assert list(shapes_of(text)) == [], changed


def test_a_name_that_ends_a_string_executes_nothing(tmp_path: Path) -> None:
    readable(SAXPY)
    mark = tmp_path / "executed"
    source = SAXPY.replace("saxpy", f'(saxpy /*"""\n    open("{mark}", "w")\n    """*/)')
    for text in ports(source):
        assert str(mark) not in text
        ttx.explore(ttx.port(source), rows=32, columns=32)
    assert not mark.exists()


def test_templates_are_literals() -> None:
    """No module but the writer makes text of a skeleton: the others have no strings with fields, and no operators or
    methods that join strings."""
    tree = ast.parse(Path(skeletons.__file__).read_text())
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr():
                # Of errors of ours, and of the conditions in comments, which `comment` escapes.
                parents = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and node in ast.walk(one)]
                innermost = {ast.unparse(one.func) for one in parents}
                assert innermost & {"comment", "AssertionError"}, ast.unparse(node)
            case ast.Call(ast.Name("Code")):
                pytest.fail("Code is made by the functions of writing alone")
            case ast.Call(ast.Name("code"), arguments):
                (template,) = arguments
                table = isinstance(template, ast.Subscript | ast.Name | ast.Attribute)
                assert table or isinstance(template, ast.Constant), ast.unparse(node)
            case ast.Call(ast.Attribute(_, "format" | "join" | "replace" | "format_map" | "__add__")):
                pytest.fail(ast.unparse(node))
            case ast.BinOp(ast.Constant(str()), _, _) | ast.BinOp(_, _, ast.Constant(str())):
                pytest.fail(ast.unparse(node))
            case _:
                pass


def test_words_of_templates_are_reserved() -> None:
    words = set[str]()
    for module in (skeletons, host, writing):
        for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text())):
            match node:
                case ast.Call(ast.Name("code"), [ast.Constant(str(template))]) if "from {name}" not in template:
                    code = re.sub(r"\"[^\"]*\"|#.*", "", template)
                    words |= set(re.findall(r"(?<![\w.{])[A-Za-z_]\w*(?![\w}]|=[^=])", code))
                case _:
                    pass
    prose = {"Attention", "Causal", "One", "has", "whole", "Not", "stored", "here", "attention", "prim_func", "summary"}
    assert {"scores", "T", "block", "acc", "bx"} <= words
    assert words - prose <= RESERVED, words - prose - RESERVED


def test_names_are_apart() -> None:
    names = SkeletonNames()
    given = ["g.x", "g_x", "g__x", "g-x", "x", "é", "è", "range", "T", "class", "1", "", "_", "a" * 200, "a" * 300]
    texts = [names.of(one).text for one in given]
    assert len(set(texts)) == len(given)
    assert not set(texts) & RESERVED
    assert all(is_name(one) and len(one) < 80 for one in texts)
    assert [names.of(one).text for one in given] == texts
    assert names.derived(names.of("x"), "block").text != names.derived(names.of("x"), "block").text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_comments_have_one_line(hostile: str) -> None:
    text = comment(f"a{hostile}b").text
    assert text.splitlines() == [text]
    assert text.isascii()
    assert text.isprintable()
    assert ast.dump(ast.parse(f"x = 1\n{text}\ny = 2")) == ast.dump(ast.parse("x = 1\ny = 2"))
