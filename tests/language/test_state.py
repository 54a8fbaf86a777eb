# ruff: noqa: E501
"""Python in a kernel: it means what Python and TileLang make of it, or is refused at its line."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.errors import TTExploreError
from ttexplore.language.load import load_module
from ttexplore.language.tracer import elements

HEADER = """\
import array
import collections
import contextvars
import datetime
import functools
import io
import itertools
import logging
import os
import random
import threading
import time
import uuid

import numpy as np

import ttexplore.language as T
"""
# Four blocks of 32 rows, each with a different number in every element.
INPUT = (np.arange(128 * 32, dtype=np.float32).reshape(128, 32) % 97).astype(np.float32)
BLOCK = np.repeat(np.arange(4.0), 32)[:, None]
SCALED = "for i, j in T.Parallel(32, 32):\n    c[i, j] = a[i, j] * s\n"
TIMES = "    for i, j in T.Parallel(32, 32):\n        c[i, j] = c[i, j] + a[i, j] * "

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a kernel whose blocks have a block `a` of the input and make a block `c` of the output, 0 at first."""

    def file(body: str, before: str) -> str:
        text = (
            HEADER
            + textwrap.dedent(before)
            + """
@T.prim_func
def kernel(A: T.Tensor((128, 32), "float32"), C: T.Tensor((128, 32), "float32")):
    with T.Kernel(4) as bx:
        a = T.alloc_fragment((32, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A[bx * 32, 0], a)
        T.clear(c)
"""
            + textwrap.indent(body, " " * 8)
            + "\n        T.copy(c, C[bx * 32, 0])\n"
        )
        path = tmp_path / "kernels.py"
        path.write_text(text)
        return str(path)

    return file


MACRO = """
@T.macro
def bump(a, i, j):
    a[i, j] = a[i, j] + 50.0
    return a[i, j]
"""

MEANS: list[tuple[str, str, str, Callable[[Any], Any]]] = [
    # Elements are worth what they were when they were read.
    ("swap", "", "c[i, j] = 7.0\na[i, j], c[i, j] = c[i, j], a[i, j]\nc[i, j] = c[i, j] + a[i, j]", lambda a: a + 7),
    ("list", "", "old = [a[i, j]]\na[i, j] = 0.0\nc[i, j] = old[0]", lambda a: a),
    ("dict", "", "old = {'v': a[i, j] * 2.0}\na[i, j] = 0.0\nc[i, j] = old['v']", lambda a: 2 * a),
    ("star", "", "x, *r = [a[i, j], a[i, j] + 1.0]\na[i, j] = 0.0\nc[i, j] = x + r[0]", lambda a: 2 * a + 1),
    ("walrus", "", "a[i, j] = (x := a[i, j]) * 2.0\nc[i, j] = x + a[i, j]", lambda a: 3 * a),
    ("for target", "", "for v in [a[i, j]]:\n    a[i, j] = 0.0\n    c[i, j] = v", lambda a: a),
    ("default", "", "def f(v=a[i, j]):\n    return v\na[i, j] = 0.0\nc[i, j] = f()", lambda a: a),
    ("lambda reads when called", "", "f = lambda: a[i, j]\na[i, j] = 1.0\nc[i, j] = f()", np.ones_like),
    ("plain helper", "def keep(x, i, j):\n    return [x[i, j]]", "old = keep(a, i, j)\na[i, j] = 0.0\nc[i, j] = old[0]", lambda a: a),
    ("before a macro", MACRO, "c[i, j] = a[i, j] + bump(a, i, j)", lambda a: 2 * a + 50),
    ("augmented before a macro", MACRO, "a[i, j] += bump(a, i, j)\nc[i, j] = a[i, j]", lambda a: 2 * a + 50),
    ("argument of a macro", "@T.macro\ndef put(a, c, i, j, v):\n    a[i, j] = 0.0\n    c[i, j] = v", "put(a, c, i, j, a[i, j])", lambda a: a),
    ("chained targets", "", "x = a[i, j] = c[i, j] = a[i, j] + 1.0\nc[i, j] = c[i, j] + x", lambda a: 2 * a + 2),
    # Conditions.
    ("in a tuple", "", "c[i, j] = a[i, j] if bx in (0, 2) else 0.0", lambda a: a * (BLOCK % 2 == 0)),
    ("not in a set", "", "c[i, j] = a[i, j] if bx not in {0, 2} else 0.0", lambda a: a * (BLOCK % 2 == 1)),
    ("in a range", "", "c[i, j] = a[i, j] if bx in range(3, 0, -2) else 0.0", lambda a: a * (BLOCK % 2 == 1)),
    ("in nothing", "", "c[i, j] = a[i, j] if bx in range(0) or bx in () else 1.0", np.ones_like),
    ("chain", "", "c[i, j] = a[i, j] if 0 < bx < 3 else 0.0", lambda a: a * ((BLOCK > 0) & (BLOCK < 3))),
    ("not equal", "", "c[i, j] = a[i, j] if not bx == 1 != 2 else 0.0", lambda a: a * (BLOCK != 1)),
    ("in a function inside", "", "def f(x):\n    return 2.0 if x == 0 else 3.0\nc[i, j] = a[i, j] * f(bx)", lambda a: a * np.where(BLOCK == 0, 2, 3)),
    ("or of numbers", "", "c[i, j] = a[i, j] * T.cast(bx or 2, 'float32')", lambda a: a * np.where(BLOCK == 0, 2, BLOCK)),
    ("and of numbers", "", "c[i, j] = a[i, j] and 5.0", lambda a: np.where(a != 0, 5, 0)),
    ("condition and number", "", "c[i, j] = (bx > 1) and a[i, j]", lambda a: a * (BLOCK > 1)),
    ("number and condition", "", "c[i, j] = a[i, j] and bx > 1", lambda a: (a != 0) & (BLOCK > 1)),
    ("number or True", "", "c[i, j] = T.cast(bx or True, 'float32')", lambda a: np.where(BLOCK == 0, 1, BLOCK) + 0 * a),
    ("none and text", "", "c[i, j] = a[i, j] if bx == None or bx is None or bx == 'a' else 1.0", np.ones_like),
]  # fmt: skip


@pytest.mark.parametrize(("before", "body", "expected"), [row[1:] for row in MEANS], ids=[row[0] for row in MEANS])
def test_statements_on_elements(write: Write, before: str, body: str, expected: Callable[[Any], Any]) -> None:
    loop = "for i, j in T.Parallel(32, 32):\n" + textwrap.indent(body, "    ")
    run = ttx.explore(write(loop, before)).run([INPUT], backend="interpreter")
    assert run.passed
    np.testing.assert_array_equal(run.outputs[0], expected(INPUT))


RUNS: list[tuple[str, str, Any]] = [
    ("number of the block", f"s = 2.0 if bx in (0, 2) else 3.0\n{SCALED}", np.where(BLOCK % 2 == 0, 2, 3)),
    ("made of names", f"p = bx == 1\ns = T.cast(bx, 'float32')\nt = s * 2.0\ns = t if p else s\n{SCALED}", np.where(BLOCK == 1, 2, BLOCK)),
    ("names of a turn", f"for k in range(3):\n    t = k * 2\n{TIMES}T.cast(t, 'float32')\nfor k in range(2):\n    t = k\n{TIMES}t", 7),
    ("constant of all turns", f"for k in range(3):\n    s = 2.0\n{TIMES}s\n{SCALED}", 2),
    ("bound to the same again", f"s = 2.0\nfor k in range(3):\n{TIMES}s\n    s = 2.0", 6),
    ("numbers of many digits", f"n, t = 10**5000, -0.0\nfor k in range(3):\n{TIMES}(2.0 if n > 1 else t)\n    n, t = 10**5000, -0.0", 6),
    ("bound before it is read", f"t = 9.0\nfor k in range(3):\n    t = 1.0\n{TIMES}t", 3),
    ("turns written out", f"s = 1.0\nfor k in [*range(3)]:\n    s = s * 2.0\n{SCALED}", 8),
    ("while in Python", f"n, s = 3, 1.0\nwhile (n := n - 1) > 0:\n    s *= 2\n{SCALED}", 4),
    ("walrus in and", f"s = 5.0\nif (s := 2.0) > 1.0 and (t := 3.0) > 1.0:\n    s = s * t\n{SCALED}", 6),
    ("walrus in a choice", f"t = 1.0\ns = (t := 3.0) if True else 1.0\ns = s + t\n{SCALED}", 6),
    ("walrus in a comprehension", f"s = sum([(y := v) for v in [1.0, 2.0]]) + y\n{SCALED}", 5),
    ("in place", f"xs = [1.0]\nys = xs\nxs += [2.0]\ns = sum(ys)\n{SCALED}", 3),
    ("index evaluated once", f"n = [0]\ndef at():\n    n[0] += 1\n    return 0\nxs = [1.0]\nxs[at()] += 1.0\ns = xs[0] + n[0]\n{SCALED}", 3),
    ("a function that knows the loop", f"def f():\n    return T.cast(k, 'float32')\nfor k in range(3):\n{TIMES}f()", 3),
    ("blocks are themselves", f"s = {{a: 2.0, c: 3.0}}[a] if a != c and a in [c, a] else 0.0\n{SCALED}", 2),
    ("break and else of Python", f"s = 1.0\nfor q in [2.0, 3.0]:\n    if q == 3.0:\n        break\n    s *= q\nelse:\n    s = 9.0\n{SCALED}", 2),
    ("shown, not used", f"print(f'{{bx}}')\ns = 7 % 4\n{SCALED}", 3),
    ("logged, not used", f"logging.getLogger('kernel').debug('%s', bx)\nfor k in range(3):\n    logging.getLogger('kernel').debug('%s', k)\n{TIMES}1", 3),
    ("memory that Python keeps", f"@functools.cache\ndef f(n):\n    return n * 2.0\nfor k in range(3):\n{TIMES}f(1)", 6),
    ("names of modules", f"for k in range(3):\n{TIMES}len(os.path.join('a', os.sep, os.environ.get('TTX_NONE', 'b'))) * float(np.float32(0.5))", 3),
    ("asked before, and by Python's own loops", f"t, s = time.time() + random.random(), 0.0\nfor k in [*range(3)]:\n    s += float(time.monotonic() > 0) * 2\nfor k in range(3):\n{TIMES}(s if t > 0 else 0.0)", 18),
    ("objects that do not change", f"""
class Base:
    scales = {{1: 2.0}}
class Config(Base):
    def __init__(self):
        self.scale = 2.0
    @property
    def twice(self):
        return self.scale * self.scales[1]
    @functools.cached_property
    def once(self):
        return 0.5
cfg = Config()
rng = random.Random(1)
def inner(x, cfg=cfg):
    return x * cfg.twice * cfg.once
for k in range(3):
{TIMES}inner(1.0)
""", 6),
    ("del", f"for k in range(2):\n    t = 1.0\n{TIMES}t\n    del t", 2),
]  # fmt: skip


@pytest.mark.parametrize(("body", "factor"), [row[1:] for row in RUNS], ids=[row[0] for row in RUNS])
def test_python_around_loops(write: Write, body: str, factor: Any) -> None:
    run = ttx.explore(write(body, "")).run([INPUT], backend="interpreter")
    assert run.passed
    np.testing.assert_array_equal(run.outputs[0], INPUT * factor)


TURNS = "changes in Python between iterations of a kernel loop"
INSIDE = "Python changes the value of"
NO_ANSWER = "plain Python uses a value known only when the kernel runs"
LOOK_UP = "a dict or a set looks up a value known only when the kernel runs"
ANSWERS = "returns a different value each time and is called inside a kernel loop"
OF_COMPILER = "belongs to the compiler's expression, not to its value"
AFTER = "is read after the loop that binds it: its last value is not known at compile time"

REFUSED: list[tuple[str, str, str, str, str]] = [
    ("number", "", f"s = 1.0\nfor k in range(3):\n    s = s * 2.0\n{SCALED}", "s = s * 2.0", f"s {TURNS}"),
    ("augmented", "", "off = 0\nfor k in range(4):\n    T.copy(A[off, 0], a)\n    off += 32", "off += 32", f"off {TURNS}"),
    ("swap", "", "for k in T.serial(3):\n    T.copy(a, c)\n    a, c = c, a", "a, c = c, a", f"a {TURNS}"),
    ("flag", "", "first = True\nfor k in T.serial(3):\n    if first:\n        T.clear(a)\n        first = False", "first = False", f"first {TURNS}"),
    ("outer loop", "", "s = 1.0\nfor k in range(2):\n    for q in range(2):\n        T.fill(c, s)\n    s = 2.0", "s = 2.0", f"s {TURNS}"),
    ("parallel", "", "s = 1.0\nfor i, j in T.Parallel(32, 32):\n    c[i, j] = s\n    s = 2.0", "s = 2.0", f"s {TURNS}"),
    ("deleted", "", "s = 1.0\nfor k in range(2):\n    T.fill(c, s)\n    del s", "del s", f"s {TURNS}"),
    ("read by a lambda", "", "s = 1.0\nf = lambda: s\nfor k in range(2):\n    T.fill(c, f())\n    s = 2.0", "s = 2.0", f"s {TURNS}"),
    ("while", "", "v = T.alloc_var('int32')\nv = 0\nn = 1\nwhile v < n:\n    n = 5\n    v = v + 1", "n = 5", f"n {TURNS}"),
    ("list", "", "xs = []\nfor k in range(3):\n    xs.append(k)", "xs.append(k)", f"{INSIDE} xs inside a"),
    ("dict", "", "d = {}\nfor k in range(3):\n    d['s'] = 1.0", "d['s'] = 1.0", f"{INSIDE} d inside a"),
    ("deep", "", "d = [{'a': [1]}]\nfor k in range(3):\n    d[0]['a'][0] = 2", "d[0]['a'][0] = 2", f"{INSIDE} d inside a"),
    ("set", "", "d = set()\nfor k in range(3):\n    d.add(1)", "d.add(1)", f"{INSIDE} d inside a"),
    ("deque", "", "q = collections.deque([1, 2])\nfor k in range(3):\n    q.rotate(1)", "q.rotate(1)", f"{INSIDE} q inside a"),
    ("array", "", "x = np.ones(3)\nfor k in range(3):\n    x[0] = 2", "x[0] = 2", f"{INSIDE} x inside a"),
    ("attribute", "class O:\n    n = 0\no = O()", "for k in range(3):\n    o.n = o.n + 1", "o.n = o.n + 1", f"{INSIDE} o inside a"),
    ("slot", "class O:\n    __slots__ = 'n'\no = O()\no.n = 0", "for k in range(3):\n    o.n = 1", "o.n = 1", f"{INSIDE} o inside a"),
    ("class", "class O:\n    n = 0", "for k in range(3):\n    O.n = O.n + 1", "O.n = O.n + 1", f"{INSIDE} O inside a"),
    ("method", "class O:\n    n = 0\n    def up(self):\n        self.n += 1\no = O()", "for k in range(3):\n    o.up()", "o.up()", f"{INSIDE} o inside a"),
    ("bound method", "", "xs = []\nadd = xs.append\nfor k in range(3):\n    add(1)", "for k in range(3):", f"{INSIDE} xs inside a"),
    ("partial", "g = []\nadd = functools.partial(list.append, g)", "for k in range(3):\n    add(1)", "add(1)", f"{INSIDE} add inside a"),
    ("function attribute", "def f():\n    f.n += 1\nf.n = 0", "for k in range(3):\n    f()", "f()", f"{INSIDE} f inside a"),
    ("helper", "g = [1]\ndef f():\n    g[0] += 1", "for k in range(3):\n    f()", "f()", f"{INSIDE} f inside a"),
    ("closure", "def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n    return f\nf = make()", "for k in range(3):\n    f()", "f()", f"{INSIDE} f inside a"),
    ("macro", "g = [1]\n@T.macro\ndef m():\n    g[0] = 2", "for k in range(3):\n    m()", "m()", f"{INSIDE} m inside a"),
    ("argument of a macro", "@T.macro\ndef m(xs):\n    xs.append(1)", "xs = []\nfor k in range(3):\n    m(xs)", "m(xs)", f"{INSIDE} xs inside a"),
    ("nonlocal", "", "s = 1.0\ndef f():\n    nonlocal s\n    s = s * 2\nfor k in range(3):\n    f()", "for k in range(3):", f"{INSIDE} s inside a"),
    ("global", "g = 1", "global g\nfor k in range(3):\n    g = g + 1", "g = g + 1", f"{INSIDE} g inside a"),
    ("iterator", "", "it = iter([1.0, 2.0])\nfor k in range(2):\n    T.fill(c, next(it))", "T.fill(c, next(it))", f"{INSIDE} it inside a"),
    ("generator", "def gen():\n    yield 1.0\n    yield 2.0", "it = gen()\nfor k in range(2):\n    T.fill(c, next(it))", "T.fill(c, next(it))", f"{INSIDE} it inside a"),
    ("count", "", "it = itertools.count()\nfor k in range(2):\n    T.fill(c, next(it))", "T.fill(c, next(it))", f"{INSIDE} it inside a"),
    ("method of a class", "class O:\n    n = 0\n    def up(self):\n        O.n += 1\no = O()", "for k in range(3):\n    o.up()", "o.up()", f"{INSIDE} o inside a"),
    ("method that changes a global", "g = [1]\nclass O:\n    def __call__(self):\n        g[0] = 2\no = O()", "for k in range(3):\n    o()", "o()", f"{INSIDE} o inside a"),
    ("property", "g = [1]\nclass B:\n    @property\n    def up(self):\n        g[0] = 2\nclass O(B):\n    pass\no = O()", "for k in range(3):\n    o.up", "o.up", f"{INSIDE} o inside a"),
    ("static method", "g = [1]\nclass O:\n    @staticmethod\n    def up():\n        g[0] = 2", "for k in range(3):\n    O.up()", "O.up()", f"{INSIDE} O inside a"),
    ("default of a function inside", "", "def f(xs=[]):\n    xs.append(1)\nfor k in range(3):\n    f()", "f()", f"{INSIDE} f inside a"),
    ("closure of a function inside", "", "def make():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n    return f\nf = make()\nfor k in range(3):\n    f()", "f()", f"{INSIDE} f inside a"),
    ("next of an iterator", "it = iter([1.0, 2.0]).__next__", "for k in range(2):\n    T.fill(c, it())", "T.fill(c, it())", f"{INSIDE} it inside a"),
    ("bytes", "g = bytearray(2)", "for k in range(3):\n    g[0] = 1", "g[0] = 1", f"{INSIDE} g inside a"),
    ("a view of bytes", "g = memoryview(bytearray(2))", "for k in range(3):\n    g[0] = 1", "g[0] = 1", f"{INSIDE} g inside a"),
    ("typed array", "g = array.array('d', [1.0])", "for k in range(3):\n    g[0] = 2.0", "g[0] = 2.0", f"{INSIDE} g inside a"),
    ("large array", "g = np.ones((1024, 1024))", "for k in range(3):\n    g[0] = 2", "g[0] = 2", f"{INSIDE} g inside a"),
    ("random numbers", "g = random.Random(1)", "for k in range(3):\n    T.fill(c, g.random())", "T.fill(c, g.random())", f"{INSIDE} g inside a"),
    ("random numbers of NumPy", "g = np.random.default_rng(1)", "for k in range(3):\n    T.fill(c, g.random())", "T.fill(c, g.random())", f"{INSIDE} g inside a"),
    ("context variable", "g = contextvars.ContextVar('g', default=1)", "for k in range(3):\n    g.set(2)", "g.set(2)", f"{INSIDE} g inside a"),
    ("variable of a thread", "g = threading.local()\ng.x = 1", "for k in range(3):\n    g.x = 2", "g.x = 2", f"{INSIDE} g inside a"),
    ("random numbers of all", "", "for k in range(3):\n    T.fill(c, random.random())", "T.fill(c, random.random())", f"{INSIDE} random inside a"),
    ("random numbers of NumPy, of all", "def f():\n    return float(np.random.rand())", "for k in range(3):\n    T.fill(c, f())", "T.fill(c, f())", f"{INSIDE} f inside a"),
    ("random numbers of a module imported here", "def f():\n    import random as r\n    return r.random()", "for k in range(3):\n    T.fill(c, f())", "T.fill(c, f())", f"{INSIDE} f inside a"),
    ("environment", "def f(n):\n    os.environ['TTX_TURNS'] = str(n)", "for k in range(3):\n    f(len(os.getenv('TTX_TURNS', '')) + 1)", "f(len(os.getenv('TTX_TURNS', '')) + 1)", f"{INSIDE} f inside a"),
    ("clock", "", "for k in range(3):\n    T.fill(c, time.time())", "T.fill(c, time.time())", f"time.time {ANSWERS}"),
    ("clock by another name", "from time import perf_counter as now", "for k in range(3):\n    T.fill(c, now())", "T.fill(c, now())", f"time.perf_counter {ANSWERS}"),
    ("clock of a helper", "def f():\n    import time\n    return time.monotonic_ns()", "for k in range(3):\n    T.fill(c, f())", "return time.monotonic_ns()", f"time.monotonic_ns {ANSWERS}"),
    ("date", "", "for i, j in T.Parallel(32, 32):\n    c[i, j] = datetime.datetime.now().second", "c[i, j] = datetime.datetime.now().second", f"datetime.now {ANSWERS}"),
    ("random numbers of the system", "g = random.SystemRandom()", "for k in range(3):\n    T.fill(c, g.random())", "T.fill(c, g.random())", f"os.urandom {ANSWERS}"),
    ("identifier", "", "for k in range(3):\n    T.fill(c, uuid.uuid4().int % 7)", "T.fill(c, uuid.uuid4().int % 7)", f"os.urandom {ANSWERS}"),
    ("caught and asked again", "", "for k in range(3):\n    try:\n        x = time.time()\n    except Exception:\n        x = 1.0\n    T.fill(c, x)", "x = time.time()", f"time.time {ANSWERS}"),
    ("file that is read", "", "with open(__file__) as g:\n    for k in range(3):\n        T.fill(c, len(g.read(1)))", "T.fill(c, len(g.read(1)))", f"{INSIDE} g inside a"),
    ("text file", "g = io.StringIO('1\\n2')", "for k in range(2):\n    T.fill(c, float(g.readline()))", "T.fill(c, float(g.readline()))", f"{INSIDE} g inside a"),
    ("name of a value", "", "T.fill(c, 2.0 if bx.name == '0' else 3.0)", "T.fill(c, 2.0 if bx.name == '0' else 3.0)", f".name {OF_COMPILER}"),
    ("name of a value in a helper", "def f(b):\n    return b.name == '0'", "T.fill(c, f(bx))", "return b.name == '0'", f".name {OF_COMPILER}"),
    ("name of a value by getattr", "", "T.fill(c, getattr(bx, 'name') == '0')", "T.fill(c, getattr(bx, 'name') == '0')", f".name {OF_COMPILER}"),
    ("part of a value", "", "for i, j in T.Parallel(32, 32):\n    c[i, j] = (a[i, j] * 2.0).a", "c[i, j] = (a[i, j] * 2.0).a", f".a {OF_COMPILER}"),
    ("whether it is one object", "", "T.fill(c, (bx == 0).same_as(bx))", "T.fill(c, (bx == 0).same_as(bx))", f".same_as {OF_COMPILER}"),
    ("memory of a helper", "kept = {}\ndef f(n):\n    if n not in kept:\n        kept[n] = n * 2.0\n    return kept[n]", "for k in range(3):\n    T.fill(c, f(1))", "T.fill(c, f(1))", f"{INSIDE} f inside a"),
    ("text in a helper", "def f(b):\n    return f'{b}' == '0'", "T.fill(c, 2.0 if f(bx) else 3.0)", "return f'{b}' == '0'", "bx is converted to text"),
    ("text of an equality", "f = lambda b: str([b == 0])", "T.fill(c, len(f(bx)))", "f = lambda b: str([b == 0])", "EqualOp(bx, 0) is converted to text"),
    ("caught outside of a loop", "", "for q in T.serial(2):\n    try:\n        for k in T.serial(2):\n            1 / 0\n    except ZeroDivisionError:\n        pass\n    T.copy(a, c)", "for k in T.serial(2):", "an exception leaves a kernel loop or a branch"),
    ("caught outside of a branch", "", "try:\n    if bx == 0:\n        1 / 0\nexcept ZeroDivisionError:\n    pass\nT.copy(a, c)", "if bx == 0:", "an exception leaves a kernel loop or a branch"),
    ("loop variable", "", "for k in T.serial(4):\n    T.clear(c)\nT.fill(c, k)", "T.fill(c, k)", f"k {AFTER}"),
    ("its copy", "", "for k in T.serial(4):\n    last = k\nT.fill(c, last)", "T.fill(c, last)", f"last {AFTER}"),
    ("read before it is bound", "", "for k in T.serial(2):\n    T.fill(c, s)\n    s = 1.0", "T.fill(c, s)", "s is read before it has a value"),
    ("branch", "", "s = 1.0\nif bx == 0:\n    s = 2.0\nT.fill(c, s)", "T.fill(c, s)", "s is bound in a branch that is decided when the kernel runs"),
    ("branch of two", "", "if bx == 0:\n    s = 2.0\nelse:\n    s = 3.0\nT.fill(c, s)", "T.fill(c, s)", "s is bound in a branch that is decided when the kernel runs"),
    ("side of another", "", "if bx == 0:\n    s = 2.0\nelse:\n    T.fill(c, s)", "T.fill(c, s)", "s is read before it has a value"),
    ("list in a branch", "", "xs = []\nif bx == 0:\n    xs.append(1)", "xs.append(1)", f"{INSIDE} xs inside a branch"),
    ("returned in a branch", "", "def f(x):\n    if x == 0:\n        return 2.0\n    return 3.0\nT.fill(c, f(bx))", "return 2.0", "`return` inside a kernel loop or a branch"),
    ("bound under a condition", "", "if bx == 0 and (s := 2.0) > 1.0:\n    T.fill(c, s)", "if bx == 0 and (s := 2.0) > 1.0:", "whether := binds its name"),
    ("store under a condition", MACRO, "for i, j in T.Parallel(32, 32):\n    c[i, j] = bump(a, i, j) if a[i, j] > 5.0 else 0.0", "c[i, j] = bump(a, i, j) if a[i, j] > 5.0 else 0.0", "part of an expression stores a value"),
    ("list under a condition", "", "xs = []\nfor i, j in T.Parallel(32, 32):\n    c[i, j] = 1.0 if a[i, j] > 5.0 else xs.append(1) or 0.0", "c[i, j] = 1.0 if a[i, j] > 5.0 else xs.append(1) or 0.0", f"{INSIDE} xs inside a branch"),
    ("while that binds", "", "v = T.alloc_var('int32')\nv = 0\nwhile (x := v) < 3:\n    v = x + 1", "while (x := v) < 3:", "the condition of a kernel's while binds a name"),
    ("while that stores", "@T.macro\ndef up(v):\n    v[0] = v[0] + 1\n    return v[0]", "v = T.alloc_local((1,), 'int32')\nwhile up(v) < 3:\n    T.clear(c)", "while up(v) < 3:", "the condition of a kernel's while stores a value"),
    ("element in a loop", "", "v = T.alloc_local((1,), 'float32')\nold = [v[0]]\nfor k in T.serial(3):\n    T.fill(c, old[0])\n    v[0] = v[0] + 1.0", "old = [v[0]]", "v is read before a loop that writes to it, and used in the loop"),
    ("if in a helper", "def f(b):\n    if b == 0:\n        return 2.0\n    return 3.0", "T.fill(c, f(bx))", "if b == 0:", NO_ANSWER),
    ("lambda of the file", "f = lambda x: 1.0 if x != 0 else 0.0", "T.fill(c, f(bx))", "f = lambda x: 1.0 if x != 0 else 0.0", NO_ANSWER),
    ("in, in a helper", "def f(b):\n    return b in (0, 2)", "T.fill(c, f(bx))", "return b in (0, 2)", NO_ANSWER),
    ("max", "", "T.fill(c, max(bx, 1))", "T.fill(c, max(bx, 1))", NO_ANSWER),
    ("any", "", "T.fill(c, any([bx == 0]))", "T.fill(c, any([bx == 0]))", NO_ANSWER),
    ("index of a list", "", "T.fill(c, [0, 1].index(bx))", "T.fill(c, [0, 1].index(bx))", NO_ANSWER),
    ("equal lists", "", "T.fill(c, [bx] == [0])", "T.fill(c, [bx] == [0])", NO_ANSWER),
    ("is", "", "T.fill(c, (bx == 0) is True)", "T.fill(c, (bx == 0) is True)", NO_ANSWER),
    ("comprehension", "", "T.fill(c, sum([1 for q in (0, 1)\n             if q == bx]))", "if q == bx]))", NO_ANSWER),
    ("get of a dict", "", "T.fill(c, {0: 2.0}.get(\n    bx, 3.0))", "T.fill(c, {0: 2.0}.get(", LOOK_UP),
    ("dict of a lambda", "f = lambda b: (\n    {0: 1.0}\n    [b])", "T.fill(c, f(bx))", "{0: 1.0}", LOOK_UP),
    ("set of values", "", "T.fill(c, len({bx, 0}))", "T.fill(c, len({bx, 0}))", LOOK_UP),
    ("cache", "@functools.lru_cache\ndef f(b):\n    return 2.0", "T.fill(c, f(bx))", "T.fill(c, f(bx))", LOOK_UP),
    ("text", "", "T.fill(c, len(f'{bx}'))", "T.fill(c, len(f'{bx}'))", "bx is converted to text, but its value is known only when the kernel runs"),
    ("text of str", "", "T.fill(c, len(str(bx + 1)))", "T.fill(c, len(str(bx + 1)))", "bx + 1 is converted to text"),
    ("filled text", "", "T.fill(c, len('%s %d' % (1, bx)))", "T.fill(c, len('%s %d' % (1, bx)))", "bx is converted to text"),
    ("formatted text", "", "T.fill(c, len('{}'.format(bx)))", "T.fill(c, len('{}'.format(bx)))", "bx is converted to text"),
    ("read by a macro", "", "for k in T.serial(4):\n    s = k\n@T.macro\ndef m():\n    T.fill(c, s)\nm()", "T.fill(c, s)", f"s {AFTER}"),
    ("match", "", "match bx:\n    case 0:\n        T.clear(a)", "match bx:", "match depends on a value known only when the kernel runs"),
    ("match of a pair", "", "match (bx, 1):\n    case (0, 1):\n        T.clear(a)", "match (bx, 1):", "match depends on a value known only when the kernel runs"),
    ("loop in a comprehension", "", "T.fill(c, sum([k for k in T.serial(3)]))", "T.fill(c, sum([k for k in T.serial(3)]))", "plain Python iterates over a kernel loop"),
    ("block taken apart", "def f(b):\n    return [x for x in b]", "T.fill(c, f(a)[0])", "return [x for x in b]", "TypeError: 'Var' object is not iterable"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "body", "line", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_python_does_not_know_is_refused_at_its_line(
    write: Write, before: str, body: str, line: str, message: str
) -> None:
    file = write(body, before)
    with pytest.raises(TTExploreError) as caught:
        ttx.explore(file)
    error = caught.value
    assert error.message.startswith(message)
    assert error.hint
    assert error.span is not None
    assert Path(file).read_text().splitlines()[error.span.line - 1].strip() == line


ARRAY = "choose with T.if_then_else(x == 0, a, b), or pass the values to the kernel as a tensor and read an element"
INDEX = 'indices are integers: divide with //, or cast: T.cast(x, "int32")'
PARALLEL = "for i, j in T.Parallel(32, 32):\n    c[i, j] = "
BOUND = 'use // for integer division, or cast: T.cast(x, "int32")'

HINTS: list[tuple[str, str, str]] = [
    ("T.fill(c, max(bx, 0))", NO_ANSWER, "write T.max(x, y)"),
    ("T.fill(c, min([bx, 0]))", NO_ANSWER, "write T.min(x, y)"),
    ("T.fill(c, sorted((bx, 0))[0])", NO_ANSWER, "write T.min(x, y) and T.max(x, y)"),
    ("T.fill(c, bool(bx > 1))", NO_ANSWER, "write x != 0"),
    ("T.fill(c, abs(bx))", "TypeError: bad operand type for abs()", "write T.abs(x): "),
    ("T.fill(c, round(bx))", "TypeError: ", "write T.round(x): "),
    ("T.fill(c, divmod(bx, 2)[0])", "TypeError: ", "write x // y and x % y: "),
    ("T.fill(c, pow(bx, 2))", "TypeError: ", "write T.pow(x, y): "),
    ("T.fill(c, bx**2)", "TypeError: ", "write x * x, or T.pow(x, y) of floating-point numbers: "),
    ("T.copy(A[T.pow(bx, 2) * 32, 0], a)", "T.pow takes floating-point numbers, not int32",
     "write x * x, 1 << x for a power of 2, or "),
    ("T.fill(c, sum([a]))", "TypeError: ", "write x + y: "),
    ("T.fill(c, float(bx))", "TypeError: ", 'write T.cast(x, "float32"): '),
    ("T.fill(c, np.float32(bx))", "ValueError: ", 'write T.cast(x, "float32"): '),
    ("T.fill(c, np.sqrt(a))", "TypeError: ", "write T.sqrt(x): "),
    ("T.fill(c, np.maximum(bx, 1))", "TypeError: ", "write T.max(x, y): "),
    ("T.fill(c, np.array([1.0, 2.0])[bx])", "IndexError: ", f"{ARRAY}: "),
    ("T.fill(c, len([1, 2][:bx]))", "TypeError: ", f"{ARRAY}: "),
    ("T.fill(c, len(  # ä\n    'ä') * [1, 2][bx])", "TypeError: ", f"{ARRAY}: "),
    ("T.fill(c, [0] * bx)", "TypeError: ", "plain Python cannot compute with values known only when the kernel runs; "),
    ("T.fill(c, 1 / len([2][1:]))", "ZeroDivisionError: ", "the kernel's own Python raised this"),
    ("T.fill(c, int('x'))", "ValueError: ", "the kernel's own Python raised this"),
    ("T.fill(c, [1] * 10000)", "T.fill works on numbers, not on [1, 1,", "pass a number, an element such as a[i, j]"),
    (f"{PARALLEL}a[i * 1.0, j]", "an index of a has the dtype float32", INDEX),
    ("T.copy(A[bx * 32.0, 0], a)", "an index of A has the dtype float32", INDEX),
    ("T.copy(A[bx * 32 : bx * 32 + 32.0, 0:32], a)", "an index of A has the dtype float32", INDEX),
    ("for i, j in T.Parallel(32, 32):\n    c[1.5, j] = a[i, j]", "an index of c has the dtype float32", INDEX),
    ("for k in range(T.cast(bx, 'float32')):\n    T.clear(c)", "a loop bound is ", BOUND),
    ("for i, j in T.Parallel(32, T.cast(bx, 'float32')):\n    T.clear(c)", "T.Parallel: ", "use an integer extent: "),
    ("d = T.alloc_fragment(('x' * 5000, 2), 'float32')", "T.alloc_fragment: 'xxxx", "write the shape as a tuple of ints"),
    (f"{PARALLEL}T.truncdiv(a[i, j], 2.0)", "an integer operation is applied to", "write T.trunc(a / b)"),
    (f"{PARALLEL}T.truncmod(a[i, j], 2.0)", "an integer operation is applied to", "write a - T.trunc(a / b) * b"),
    (f"{PARALLEL}T.truncdiv(T.cast(a[i, j], 'int32'), 3)", "no rule lowers T.truncdiv of elements", "use a // b and a % b"),
    (f"{PARALLEL}T.truncmod(T.cast(a[i, j], 'int32'), 3)", "no rule lowers T.truncmod of elements", "use a // b and a % b"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message", "hint"), HINTS, ids=[row[0] for row in HINTS])
def test_a_hint_names_what_takes_its_place(write: Write, body: str, message: str, hint: str) -> None:
    with pytest.raises(TTExploreError) as caught:
        ttx.explore(write(body, "")).run([INPUT], backend="interpreter")
    assert caught.value.message.startswith(message)
    assert len(caught.value.message) < 250
    assert caught.value.hint.startswith(hint)
    assert caught.value.span is not None


def test_values_know_their_dtype_in_plain_helpers(write: Write) -> None:
    before = "def f(x, j):\n    return x + T.cast(T.cast(j, j.dtype), x.dtype) * (j.dtype.bits / 16)"
    run = ttx.explore(write(f"{PARALLEL}f(a[i, j], j)", before)).run([INPUT], backend="interpreter")
    np.testing.assert_array_equal(run.outputs[0], INPUT + np.arange(32) * 2)


def test_elements_used_late_are_named_in_linear_time(write: Write) -> None:
    def lines(count: int) -> int:
        body = f"for i, j in T.Parallel(32, 32):\n    old = [a[i, j] for _ in range({count})]\n    a[i, j] = 0.0\n"
        kernel = load_module(write(body + "    for x in old:\n        c[i, j] = c[i, j] + x\n", ""))
        seen = 0

        def trace(frame: Any, event: str, _argument: Any) -> Any:
            nonlocal seen
            seen += event == "line"
            return trace

        def called(frame: Any, event: str, _argument: Any) -> Any:
            return trace(frame, event, None) if frame.f_code.co_filename == elements.__file__ else None

        before = sys.gettrace()
        sys.settrace(called)
        try:
            load_module(str(kernel.__file__))
        finally:
            sys.settrace(before)
        return seen

    assert lines(160) < 2.2 * lines(80)


def test_a_macro_calls_itself(write: Write) -> None:
    before = "@T.macro\ndef add(c, a, n):\n    for i, j in T.Parallel(32, 32):\n        c[i, j] = c[i, j] + a[i, j]\n    if n > 1:\n        add(c, a, n - 1)"
    run = ttx.explore(write("add(c, a, 3)", before)).run([INPUT], backend="interpreter")
    np.testing.assert_array_equal(run.outputs[0], INPUT * 3)


def test_an_exception_that_a_helper_catches_leaves_no_operand_behind(write: Write) -> None:
    before = "def fails(x):\n    raise ValueError\ndef caught(f):\n    try:\n        f()\n    except ValueError:\n        return True"
    body = f"s = 2.0 if 1 and caught(lambda: 0 or fails(1)) else 1.0\n{SCALED}"
    run = ttx.explore(write(body, before)).run([INPUT], backend="interpreter")
    np.testing.assert_array_equal(run.outputs[0], INPUT * 2)


def test_what_an_installed_package_keeps_is_its_own(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    text = "calls = []\ndef twice(x):\n    calls.append(x)\n    return x * 2.0\n"
    (folder / "installed_twice.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    body = f"for k in range(3):\n{TIMES}helper(1.0)"
    run = ttx.explore(write(body, "import installed_twice\ndef helper(x):\n    return installed_twice.twice(x)")).run(
        [INPUT], backend="interpreter"
    )
    np.testing.assert_array_equal(run.outputs[0], INPUT * 6)
