"""Every error of the kernel language: its kind, its line, what it says and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.language.conftest import body_text
from ttexplore.errors import KernelError, TTExploreError, Unsupported, UsageError
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.language import Kernel, Tensor, alloc_shared, copy, macro, prim_func
from ttexplore.language.load import load_kernel, trace

# The first line of a body: two imports, the decorator, def and with are above it.
BODY_LINE = 6


def raised(trace: Callable[..., Any], *args: Any, **options: Any) -> TTExploreError:
    with pytest.raises(TTExploreError) as caught:
        trace(*args, **options)
    return caught.value


GIVE_A_NUMBER = "pass a number, an element such as a[i, j], or an expression of these"


@pytest.mark.parametrize(
    ("body", "kind", "line", "message", "hint"),
    [
        (
            "T.clear(C)\nT.copy(A, C)",
            KernelError,
            1,
            "T.copy: the shapes differ: A (128, 128) to C (64, 64)",
            "copy blocks of the same shape",
        ),
        (
            "T.copy(A[0:32, 0:64], C)",
            KernelError,
            0,
            "T.copy: the shapes differ: A (32, 64) to C (64, 64)",
            "copy blocks of the same shape",
        ),
        (
            "T.copy(None, C)",
            KernelError,
            0,
            "T.copy takes a tensor, a buffer or a region of one, not None",
            "pass a buffer, buffer[i, j] or buffer[a:b, c:d]",
        ),
        (
            "r = T.alloc_shared((2, 2, 64, 64))\nT.copy(A[0, 0], r)",
            KernelError,
            1,
            "T.copy: A has 2 dimensions, the other side is (2, 2, 64, 64)",
            "index as many dimensions as the block has",
        ),
        (
            "T.gemm(A, B, C)",
            KernelError,
            0,
            "T.gemm: A (128, 128) times B (128, 128) does not fit C (64, 64)",
            "check the block shapes, transpose_A and transpose_B",
        ),
        (
            "T.gemm(A[0:64, 0:32], B[0:32, 0:64], C, transpose_B=True)",
            KernelError,
            0,
            "T.gemm: A (64, 32) times B (32, 64), transpose_B does not fit C (64, 64)",
            "check the block shapes, transpose_A and transpose_B",
        ),
        (
            "v = T.alloc_fragment((64,))\nT.gemm(v, v, C)",
            KernelError,
            1,
            "T.gemm: v (64,) is not a matrix",
            "index the leading dimensions",
        ),
        ("T.fill(C, None)", KernelError, 0, "T.fill works on numbers, not on None", GIVE_A_NUMBER),
        (
            "T.fill(C, A)",
            KernelError,
            0,
            "T.fill works on elements, but A is a block",
            "write A[i, j] inside `for i, j in T.Parallel(...)`",
        ),
        (
            "x = T.alloc_shared((4,), 'int32')\nT.fill(x, 0.5)",
            KernelError,
            1,
            "0.5 is not an integer, as int32 needs",
            "cast it: int(...) or T.cast(value, dtype)",
        ),
        (
            "T.reduce_sum(A, C, dim=0)",
            KernelError,
            0,
            "T.reduce_sum: A (128, 128) along dim=0 does not fit C (64, 64)",
            "the result has the source's shape without that dimension",
        ),
        ("T.reduce_max(C, C, dim=2)", KernelError, 0, "T.reduce_max: dim=2, but C (64, 64) has 2 dimensions", ""),
        (
            "T.reduce(C, C, 'mean')",
            Unsupported,
            0,
            "T.reduce_mean is not lowered",
            f"reductions are {', '.join(JOININGS)}",
        ),
        # Regions and elements.
        (
            "T.copy(A[0:64, 96:160], C)",
            KernelError,
            0,
            "A[96:160] along dimension 1 is outside of its extent 128",
            "A has the shape (128, 128)",
        ),
        (
            "T.copy(A[64:64, 0:64], C)",
            KernelError,
            0,
            "A[64:64] along dimension 0 is empty",
            "A has the shape (128, 128)",
        ),
        ("T.copy(A[0:64:2, 0:64], C)", Unsupported, 0, "the region of A with step 2 is not lowered", "use a unit step"),
        (
            "T.copy(A[0:bx, 0:64], C)",
            Unsupported,
            0,
            "A with the extent bx, which depends on run-time values, is not lowered",
            "give blocks a constant size",
        ),
        (
            "C[0, 0] = A[0, 0, 0]",
            KernelError,
            0,
            "A has 2 dimensions and is indexed with 3",
            "give one index for each dimension",
        ),
        ("C[0] = 1.0", KernelError, 0, "C has 2 dimensions and is indexed with 1", "give one index for each dimension"),
        (
            "T.copy(A[0:1, 0:1, 0:1], C)",
            KernelError,
            0,
            "A (128, 128) is indexed with 3 indices",
            "give one index or slice for each dimension",
        ),
        ("C[0:2, 0] = 1.0", KernelError, 0, "C: a slice cannot be assigned", "use T.copy or T.fill"),
        (
            "C[0, 0] = A",
            KernelError,
            0,
            "storing to C works on elements, but A is a block",
            "write A[i, j] inside `for i, j in T.Parallel(...)`",
        ),
        ("C[0, 0] = None", KernelError, 0, "storing to C works on numbers, not on None", GIVE_A_NUMBER),
        ("C[0, None] = 1", KernelError, 0, "an index of C works on numbers, not on None", GIVE_A_NUMBER),
        (
            "C[0, 0] = T.exp(A)",
            KernelError,
            0,
            "T.exp works on elements, but A is a block",
            "write A[i, j] inside `for i, j in T.Parallel(...)`",
        ),
        ("C[0, 0] = T.max(A[0, 0])", KernelError, 0, "T.max takes 2 arguments, not 1", ""),
        ("C[0, 0] = T.exp('x')", KernelError, 0, "T.exp works on numbers, not on 'x' (str)", GIVE_A_NUMBER),
        (
            "C[0, 0] = T.cast(A, 'int32')",
            KernelError,
            0,
            "A cannot be cast to int32",
            "cast numbers and elements, not blocks",
        ),
        (
            "C[0, 0] = T.float32(__import__('numpy').complex64(2))",
            KernelError,
            0,
            "np.complex64(2+0j) cannot be cast to float32",
            "cast numbers and elements, not blocks",
        ),
        ("C[0, 0] = T.infinity('int32')", KernelError, 0, "int32 has no infinity", "use T.max_value"),
        (
            "C[0, 0] = A[0, 0] if bx > 0 else A",
            KernelError,
            0,
            "`x if c else y` works on elements, but A is a block",
            "write A[i, j] inside `for i, j in T.Parallel(...)`",
        ),
        # Memory.
        (
            "x = T.alloc_shared((0, 4))",
            KernelError,
            0,
            "T.alloc_shared: the shape (0, 4) has no elements",
            "use extents of 1 or more",
        ),
        (
            "x = T.alloc_shared((4.5, 4))",
            KernelError,
            0,
            "T.alloc_shared: 4.5 is not a valid extent",
            "write the shape as a tuple of ints",
        ),
        (
            "x = T.alloc_shared((bx, 4))",
            Unsupported,
            0,
            "T.alloc_shared with the size bx, which is not known at compile time, is not lowered",
            "give the kernel constant sizes: pass them as arguments of a factory, or use T.const",
        ),
        (
            "x = T.alloc_shared((4, 4), scope='local.x')",
            KernelError,
            0,
            "T.alloc_shared: unknown scope 'local.x'",
            "remove scope=",
        ),
        # Loops and branches.
        (
            "for i in T.serial(4.0):\n    T.clear(C)",
            KernelError,
            0,
            "a loop bound is 4.0, which is not an integer",
            'use // for integer division, or cast: T.cast(x, "int32")',
        ),
        (
            "for i in T.serial(0, 4, 0):\n    T.clear(C)",
            KernelError,
            0,
            "a loop steps by 0",
            "use a constant step other than 0",
        ),
        (
            "for i in T.serial(bx, 0, -1):\n    T.clear(C)",
            Unsupported,
            0,
            "a loop that counts down from a value known only when the kernel runs is not lowered",
            "count up",
        ),
        (
            "for i in T.Parallel():\n    T.clear(C)",
            KernelError,
            0,
            "T.Parallel needs at least one extent",
            "write T.Parallel(block_M, block_N)",
        ),
        (
            "for i in T.Parallel(0):\n    T.clear(C)",
            KernelError,
            0,
            "T.Parallel: the extent 0 leaves nothing to do",
            "use extents of 1 or more",
        ),
        (
            "for i in T.Parallel(2.0):\n    T.clear(C)",
            KernelError,
            0,
            "T.Parallel: 2.0 is not a valid extent",
            "use an integer extent: // divides integers",
        ),
        (
            "for i, j in T.Parallel(4):\n    T.clear(C)",
            KernelError,
            0,
            "the loop gives 1 index to 2 names",
            "name each index",
        ),
        (
            "for i in T.Pipelined(4, num_stages=-1):\n    T.clear(C)",
            KernelError,
            0,
            "T.Pipelined: num_stages is -1",
            "use 0 or more stages",
        ),
        (
            "for i in bx:\n    T.clear(C)",
            KernelError,
            0,
            "this cannot be iterated over",
            "use range, T.serial, T.Parallel or T.Pipelined",
        ),
        ("for i in range(1, 2, 3, 4):\n    T.clear(C)", KernelError, 0, "range takes 1 to 3 bounds, not 4", ""),
        (
            "for i in range(4):\n    T.clear(C)\nelse:\n    T.clear(C)",
            Unsupported,
            0,
            "`else` of a kernel loop is not lowered",
            "set a T.alloc_var before `break` and test it afterwards",
        ),
        (
            "while bx > 0:\n    T.clear(C)\nelse:\n    T.clear(C)",
            Unsupported,
            0,
            "`else` of a kernel loop is not lowered",
            "set a T.alloc_var before `break` and test it afterwards",
        ),
        (
            "for i in [1, 2]:\n    if bx == i:\n        break",
            KernelError,
            2,
            "`break` depends on a value known only when the kernel runs, but Python runs this loop",
            "loop with range or T.serial",
        ),
        (
            "assert bx > 0",
            Unsupported,
            0,
            "an assert on a value known only when the kernel runs is not lowered",
            "leave it out",
        ),
        (
            "for i in range(4):\n    return",
            Unsupported,
            1,
            "`return` inside a kernel loop or a branch on run-time values is not lowered",
            "use if and else",
        ),
        (
            "with T.Kernel(2) as b:\n    T.clear(C)",
            KernelError,
            0,
            "T.Kernel is inside another T.Kernel",
            "end the first: launches follow one another",
        ),
        *(
            (f"for i, j in T.Persistent({domain}, 4, bx):\n    T.clear(C)", KernelError, 0, message, hint)
            for domain, message, hint in (
                ("[2.5, 2]", "T.Persistent: 2.5 is not a valid extent", "use an integer extent: // divides integers"),
                ("[0, 2]", "T.Persistent: the extent 0 leaves nothing to do", "use extents of 1 or more"),
                ("[]", "T.Persistent needs at least one extent", "write T.Persistent([Nt, Mt], blocks, block)"),
            )
        ),
        # Names.
        ("T.cpoy(A, C)", KernelError, 0, "T.cpoy does not exist", "did you mean T.copy?"),
        ("T.qqqqqqq(A, C)", KernelError, 0, "T.qqqqqqq does not exist", "see the names in dir(ttexplore.language)"),
        (
            "T.clear(C)\nT.atomic_store(C[0, 0], 1.0)",
            Unsupported,
            1,
            "T.atomic_store is not lowered",
            "let one block own each output element, and loop over the parts of its sum",
        ),
        (
            "x = T.WSSyncKind.producer",
            Unsupported,
            0,
            "T.WSSyncKind is not lowered",
            "leave it out: the kernel is always split into a reader, a compute kernel and a writer that run at the "
            "same time; write the loop with T.Pipelined",
        ),
        (
            "T.copy(A[0, 0], C, disable_tmb=True)",
            KernelError,
            0,
            "T.copy has no argument disable_tmb",
            "did you mean disable_tma?",
        ),
        ("T.gemm(C, C, C, alpha=2.0)", KernelError, 0, "T.gemm has no argument alpha", "leave it out"),
        ("T.fill(C, 0.0, where=C)", KernelError, 0, "T.fill has no argument where", "leave it out"),
        (
            "tx = T.get_thread_binding(1)",
            KernelError,
            0,
            "T.get_thread_binding(1): the threads of the block have 1 axis",
            "say how many threads there are along each axis: T.Kernel(..., threads=(32, 8))",
        ),
        # The kernel's own Python.
        (
            "for i in T.serial(2):\n    T.copy(A[i / 2, 0], C)",
            KernelError,
            1,
            "/ is applied to integers, and its result has a fraction",
            'use // for an integer result, or cast one side first: T.cast(x, "float32")',
        ),
        (
            "T.clear(C)\nx = 1 // 0",
            KernelError,
            1,
            "ZeroDivisionError: integer division or modulo by zero",
            "the kernel's own Python raised this while it was traced",
        ),
        (
            "for i, j in T.Parallel(32, 32):\n    C[i, j] = abs(A[i, j])",
            KernelError,
            1,
            "TypeError: bad operand type for abs(): 'TensorLoad'",
            "write T.abs(x): plain Python cannot compute with values known only when the kernel runs",
        ),
        (
            "for i, j in T.Parallel(32, 32):\n    C[i, j] = T.cast(A[i, j], 'float32') // 2.0",
            KernelError,
            1,
            "an integer operation is applied to floating-point numbers",
            'cast first: T.cast(x, "int32"), or write T.floor(a / b) for a // b, a - T.floor(a / b) * b for a % b',
        ),
        (
            "T.clear(D)",
            KernelError,
            0,
            "NameError: name 'D' is not defined",
            "the kernel's own Python raised this while it was traced",
        ),
        (
            "raise ValueError('no such block')",
            KernelError,
            0,
            "ValueError: no such block",
            "the kernel's own Python raised this while it was traced",
        ),
        (
            "assert A.shape[0] == 4, 'four'",
            KernelError,
            0,
            "AssertionError: four",
            "the kernel's own Python raised this while it was traced",
        ),
    ],
)
def test_errors_in_a_kernel_name_their_line(
    trace_body: Callable[..., Any], body: str, kind: type[TTExploreError], line: int, message: str, hint: str
) -> None:
    error = raised(trace_body, body)
    assert type(error) is kind
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert error.span.line == BODY_LINE + line
    assert error.span.file.endswith("kernels.py")
    assert error.span.column > 8


SILENT = "class Silent(Exception):\n    def __str__(self):\n        raise RuntimeError('no text')\n"


def test_an_exception_without_a_text_is_told(trace_body: Callable[..., Any], tmp_path: Path) -> None:
    error = raised(trace_body, f"{SILENT}raise Silent")
    assert (error.code, error.message) == ("TTX-K011", "Silent: its text raises another error")
    (tmp_path / "silent.py").write_text(f"{SILENT}raise Silent\n")
    error = raised(load_kernel, f"{tmp_path / 'silent.py'}::kernel")
    assert (error.code, error.message) == ("TTX-U004", "Silent: its text raises another error")


def test_python_errors_keep_their_cause(trace_body: Callable[..., Any]) -> None:
    assert isinstance(raised(trace_body, "x = 1 // 0").__cause__, ZeroDivisionError)


HELPER = """
def helper(X, i):
    if i > 2:
        X[i, 0] = 1.0

"""
STORE = HELPER.replace("    if i > 2:\n", "    if True:\n")


@pytest.mark.parametrize(("before", "line"), [(HELPER, 5), (STORE, 6)])
def test_plain_helpers_that_need_a_macro_say_so(trace_body: Callable[..., Any], before: str, line: int) -> None:
    error = raised(trace_body, "for i in range(4):\n    helper(C, i)", before=before)
    assert isinstance(error, KernelError)
    assert error.message == "plain Python uses a value known only when the kernel runs"
    assert error.hint.startswith("decorate the helper function with @T.macro")
    assert error.span is not None
    assert error.span.line == line


def test_values_of_modules_that_are_not_installed_are_refused(trace_body: Callable[..., Any]) -> None:
    before = "import flash_attn\n\n"
    for body, message in (
        ("for i in T.serial(flash_attn.size()):\n    T.clear(C)", "a loop bound is flash_attn.size()"),
        ("for i in T.Parallel(flash_attn.size()):\n    T.clear(C)", "an extent of T.Parallel is flash_attn.size()"),
        ("x = T.alloc_shared((flash_attn.size(), 4))", "a size of T.alloc_shared is flash_attn.size()"),
        ("C[0, 0] = T.exp(flash_attn.size())", "an operand of T.exp is flash_attn.size()"),
    ):
        error = raised(trace_body, body, before=before)
        assert error.message == message + ", from a module that is not installed"
        assert error.hint == "install the module, or pass the value as an argument of the kernel"
        assert error.span is not None
        assert error.span.line == BODY_LINE + 2


def test_errors_in_a_macro_name_the_macros_line(trace_body: Callable[..., Any]) -> None:
    error = raised(trace_body, "m(C)", before="@T.macro\ndef m(X):\n    T.clear(X)\n    T.gemm(X, X, None)\n")
    assert error.span is not None
    assert error.span.line == 6
    error = raised(trace_body, "m(C, bx)", before="@T.macro\ndef m(X, b):\n    if b > 0:\n        return 1\n")
    assert error.message == "`return` inside a kernel loop or a branch on run-time values is not lowered"


@pytest.mark.parametrize(
    ("scope", "message", "hint"),
    [
        ("T.Kernel()", "T.Kernel has 0 axes", "pass one to three block counts"),
        ("T.Kernel(1, 2, 3, 4)", "T.Kernel has 4 axes", "pass one to three block counts"),
        ("T.Kernel(2.5) as bx", "T.Kernel: 2.5 is not a valid extent", "use an integer extent: // divides integers"),
        ("T.Kernel(0) as bx", "T.Kernel: the extent 0 leaves nothing to do", "use extents of 1 or more"),
        ("T.Kernel(2) as (bx, by)", "T.Kernel gives 1 index to 2 names", "name each index"),
    ],
)
def test_errors_of_the_grid(trace_body: Callable[..., Any], scope: str, message: str, hint: str) -> None:
    error = raised(trace_body, "T.clear(C)", scope=scope)
    assert (error.message, error.hint, error.span and error.span.line) == (message, hint, 5)


@pytest.mark.parametrize(
    ("body", "line", "message", "hint"),
    [
        (
            "    T.clear(A)",
            5,
            "kernel launches no blocks",
            "write its statements inside `with T.Kernel(blocks) as bx:`",
        ),
        ("    pass", 4, "kernel launches no blocks", "write its statements inside `with T.Kernel(blocks) as bx:`"),
        (
            "    T.Kernel(4)",
            4,
            "kernel launches no blocks",
            "write its statements inside `with T.Kernel(blocks) as bx:`",
        ),
        (
            "    with T.Kernel(4) as bx:\n        T.clear(A)\n    T.clear(A)",
            7,
            "a statement is outside T.Kernel",
            "move it into `with T.Kernel(...)`",
        ),
        (
            "    for i in range(4):\n        with T.Kernel(4) as bx:\n            T.clear(A)",
            6,
            "T.Kernel is inside a loop or a branch",
            "put it at the top level of the kernel",
        ),
        (
            "    x = T.alloc_shared((4, 4))",
            5,
            "T.alloc_shared is outside T.Kernel",
            "allocate inside `with T.Kernel(...)`",
        ),
        (
            "    bx = T.get_block_binding()",
            5,
            "there are no block indices outside T.Kernel",
            "use it inside `with T.Kernel(...)`",
        ),
        ("    x = T.const('M')", 5, "T.const M has no value", "pass it: explore(kernel, M=1024)"),
    ],
)
def test_errors_of_the_frame(trace_text: Callable[..., Any], body: str, line: int, message: str, hint: str) -> None:
    error = raised(trace_text, f"@T.prim_func\ndef kernel(A: T.Tensor((64, 64), 'float32')):\n{body}\n")
    assert isinstance(error, KernelError)
    assert (error.message, error.hint, error.span and error.span.line) == (message, hint, line)


@pytest.mark.parametrize(
    ("parameter", "kind", "message"),
    [
        ("A", KernelError, "parameter A is not annotated, so it is not a tensor"),
        ("A: int", KernelError, "parameter A is annotated with <class 'int'>, so it is not a tensor"),
        ("A: T.Tensor((4, 0), 'float32')", KernelError, "A: the shape (4, 0) has no elements"),
        ("A: T.Tensor((4, 4), 'float33')", KernelError, "'float33' is not a dtype"),
        (
            "A: T.Tensor((T.dynamic('m') + 1, 4))",
            Unsupported,
            "A with the size m + 1, which is not known at compile time, is not lowered",
        ),
        (
            "A: T.StridedTensor((4, 4), (4, 1))",
            KernelError,
            "parameter A is annotated with T.StridedTensor, so it is not a tensor",
        ),
    ],
)
def test_errors_of_parameters(
    trace_text: Callable[..., Any], parameter: str, kind: type[TTExploreError], message: str
) -> None:
    error = raised(trace_text, f"@T.prim_func\ndef kernel({parameter}):\n    with T.Kernel(1) as bx:\n        pass\n")
    assert type(error) is kind
    assert error.message == message
    assert error.hint
    assert error.span is not None
    assert (error.span.line, error.span.column) == (4, 12)


EAGER = """
@tilelang.jit
def kernel(A, block, dtype=T.float32, other=None):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(M // block) as bx:
        T.copy(A, C)
    return C
"""


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"N": 64}, "{at} needs M, block", 'explore("{at}", N=64, M=1024, block=32)'),
        ({"M": 64, "N": 64, "blck": 32}, "{at} takes no argument blck", "did you mean block?"),
        (
            {"M": 64, "policy": "strided"},
            "{at} takes no argument policy",
            'pass it as an option: explore(..., options={{"policy": ...}}), or --option policy=...',
        ),
        ({"M": 64, "zzz": 1}, "{at} takes no argument zzz", "it takes block, dtype, other, M, N"),
        (
            {"A": [1.0]},
            "{at}: A is a tensor: its data is not an argument of the kernel",
            "pass it when the kernel runs: explore(...).run([A, ...])",
        ),
    ],
)
def test_errors_of_arguments(
    kernel_file: Callable[..., str], arguments: dict[str, Any], message: str, hint: str
) -> None:
    at = kernel_file(EAGER) + "::kernel"
    error = raised(load_kernel, at, **arguments)
    assert isinstance(error, UsageError)
    assert (error.message, error.hint) == (message.format(at=at), hint.format(at=at))


def test_errors_of_factories(trace_text: Callable[..., Any]) -> None:
    factory = "def kernel(n, dtype):\n    assert n % 32 == 0, 'n is a multiple of 32'\n    return n\n"
    error = raised(trace_text, factory, n=64)
    assert isinstance(error, UsageError)
    assert error.message.endswith("kernels.py::kernel needs dtype")
    assert error.hint.endswith("kernels.py::kernel\", n=64, dtype='bfloat16')")
    error = raised(trace_text, factory, n=64, dtype="float32")
    assert error.message.endswith("kernels.py::kernel returns int, not a kernel")
    error = raised(trace_text, factory, n=33, dtype="float32")
    assert isinstance(error, KernelError)
    assert error.message == "AssertionError: n is a multiple of 32"
    assert error.span is not None
    assert (error.span.line, error.span.column) == (4, 12)


def test_errors_of_output_indices(trace_text: Callable[..., Any]) -> None:
    text = "@tilelang.jit(out_idx=[7])\ndef kernel():\n" + "".join(
        f"    {line}\n" for line in body_text("T.clear(C)").splitlines()
    )
    error = raised(trace_text, text + "    return kernel\n")
    assert error.message == "out_idx=[7], but kernel has 3 parameters"


def test_returning_what_is_no_tensor(trace_text: Callable[..., Any]) -> None:
    error = raised(trace_text, EAGER.replace("return C", "return 3"), M=64, N=64, block=32)
    assert isinstance(error, KernelError)
    assert (error.message, error.span and error.span.line) == ("kernel returns 3, which is not a tensor", 11)


def test_a_body_annotation_that_is_no_tensor(trace_text: Callable[..., Any]) -> None:
    error = raised(trace_text, EAGER.replace("A: T.Tensor((M, N), dtype)", "A: dtype"), M=64, N=64, block=32)
    assert (error.message, error.span and error.span.line) == (
        "A is annotated with 'float32', which is not a tensor",
        7,
    )


def test_use_outside_of_a_kernel() -> None:
    for use, what in (
        (lambda: copy(None, None), "T.copy"),
        (lambda: Kernel(4), "T.Kernel"),
        (lambda: alloc_shared((4, 4)), "T.alloc_shared"),
        (lambda: macro(lambda: None)(), "T.macro <lambda>"),
    ):
        error = raised(use)
        assert error.message == f"{what} works only inside a kernel"
        assert error.hint.startswith("use it in a @T.prim_func")


def test_what_is_no_kernel() -> None:
    error = raised(trace, Tensor((4, 4)))
    assert isinstance(error, UsageError)
    assert error.message.endswith("is not a kernel but a value of type TensorSpec")


@pytest.mark.parametrize("decorator", [prim_func, macro])
def test_a_function_that_python_has_no_source_of(decorator: Any) -> None:
    error = raised(decorator, print)
    assert error.message == "a kernel is made from <built-in function print>, which is not a Python function"
    assert error.hint.endswith("above a def")


def test_a_kernel_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def kernel():\n    pass", namespace)
    error = raised(trace, namespace["kernel"])
    assert error.message == "the source of kernel cannot be found"
    assert error.hint.startswith("define the kernel in a file or a notebook cell")


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        ("print start_profile_intrinsic", "leave it out: ex.run() gives the outputs"),
        ("BaseTileScheduler clc_try_cancel", "launch one block for each piece of work"),
        ("WSInstr WarpSpecialize", "leave it out: the kernel is always split into a reader"),
        ("sync_warp mbarrier_expect_tx alloc_cluster_barrier cluster_sync",
         "leave it out: the reader, the compute kernel and the writer hand blocks over"),
        ("tma_load async_copy copy_cluster ldg128 create_tma_descriptor", "use T.copy: the reader and the"),
        ("warp_reduce_bitand warp_reduce_bitor", "add in T.Parallel to an accumulator that a loop carries"),
        ("get_warp_idx shfl_xor ballot warpgroup_arrive thread_return", "a Tensix core has no threads or warps"),
        ("tcgen05_cp_warpx4 ptx_mma gemm_sp", "use T.gemm on whole blocks"),
        ("atomic_or atomic_load", "let one block own each output element"),
        ("device_assert assume", "leave it out of the kernel"),
        ("StridedTensor make_tensor", "give the tensor this shape on the host"),
        ("rng_rand", "pass random numbers as a tensor"),
        ("call_extern", "write it in the language itself"),
        ("Ramp vectorlow", "write the arithmetic on elements"),
    ],
)  # fmt: skip
def test_what_takes_the_place_of_a_name(trace_body: Callable[..., Any], names: str, hint: str) -> None:
    for name in names.split():
        error = raised(trace_body, f"T.{name}(1)" if name != "ws" else "with T.ws(0):\n    T.copy(A[0, 0], C)")
        assert (type(error), error.message) == (Unsupported, f"T.{name} is not lowered")
        assert error.hint.startswith(hint)
        assert error.span is not None
        assert error.span.line == BODY_LINE
