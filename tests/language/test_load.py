"""Files of kernels: TileLang's name and absent modules while they load, and what is left behind."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from ml_dtypes import bfloat16
from tvm import tirx

import ttexplore
from tests.said import said
from ttexplore.errors import KernelError, UsageError
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import constant, dtype_of
from ttexplore.language.load import kernels_in, load_kernel, load_module, trace

KERNEL = """
@tilelang.jit
def add_one(A, block, dtype=T.float32):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(N // block, M // block) as (bx, by):
        tile = T.alloc_shared((block, block), dtype)
        T.copy(A[by * block, bx * block], tile)
        for i, j in T.Parallel(block, block):
            tile[i, j] = tile[i, j] + 1
        T.copy(tile, C[by * block, bx * block])
    return C
"""
SIZES = {"M": 64, "N": 64, "block": 32}
# What TileLang's own example files do beside their kernels.
AROUND = """
import argparse, itertools
import torch
import torch.nn.functional as F
import tilelang.testing
import einops
import triton
import triton.language as tl
from torch import nn
from tilelang.autotuner import *
from tilelang.profiler import do_bench
from tilelang.carver.arch import driver
from tilelang import language as language_again
from tilelang.language.dtypes import dtype as dtype_type
from tvm import tirx

assert language_again is T

@triton.jit
def other(x_ptr, BLOCK: tl.constexpr):
    pass

class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q): return q

attention = Attention.apply

def reference(x: torch.Tensor, y: "tirx.PrimExpr", z: tirx.PrimExpr) -> torch.Tensor:
    return F.relu(x)

compiled = add_one.compile(M=64, N=64, block=32)
a = torch.randn(64, 64, device="cuda", dtype=torch.float16)
c = compiled(a)
print(c)
torch.testing.assert_close(c, reference(a, 1, 2) + 1, rtol=1e-2, atol=1e-2)
latency = compiled.get_profiler(tensor_supply_type=tilelang.TensorSupplyType.Normal).do_bench()
print(f"Latency: {latency} ms, {latency:.2f}", compiled.get_kernel_source())
if not torch.cuda.is_available():
    raise RuntimeError("the chip is a device")
eager = add_one(a, block=32)
arguments = argparse.ArgumentParser().parse_args()
broken = add_one.compile(M=64)
SEED = T.rng_init(4)

@T.macro
def later(X: T.FragmentBuffer((4, 4), T.float32)):
    T.tma_load(X, X)

@T.prim_func
def refused(A: T.Tensor((64, 64), T.float32)):
    with T.Kernel(1) as bx:
        later(A)
"""


def test_a_file_with_all_that_examples_do(kernel_file: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    modules, path, arguments = set(sys.modules), list(sys.path), list(sys.argv)
    module = load_module(kernel_file(KERNEL + AROUND))
    assert list(kernels_in(module)) == ["add_one", "compiled", "broken", "refused"]
    assert capsys.readouterr().out == ""
    assert (sys.path, sys.argv) == (path, arguments)
    new = {name.partition(".")[0] for name in set(sys.modules) - modules}
    assert not new & {"tilelang", "torch", "triton", "einops", "ttexplore_file_kernels"}
    assert trace(module.compiled).name == "add_one"
    with pytest.raises(UsageError, match="add_one needs N, block"):
        trace(module.broken)
    with pytest.raises(Exception, match=r"T\.tma_load is not lowered") as caught:
        trace(module.refused)
    assert caught.value.span.line > 60  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_names_that_tvm_had_are_gone_after_loading(kernel_file: Callable[..., str]) -> None:
    load_module(kernel_file("from tvm import tirx\nkind = tirx.PrimExpr\n"))
    assert not hasattr(tirx, "PrimExpr")


@pytest.mark.parametrize(
    "dtype", ["bfloat16", numpy.dtype(bfloat16), bfloat16, "T.bfloat16"], ids=["name", "numpy", "scalar", "text"]
)
def test_dtypes_may_be_given_in_many_ways(kernel_file: Callable[..., str], dtype: Any) -> None:
    traced = load_kernel(kernel_file(KERNEL) + "::add_one", **SIZES, dtype=dtype)
    assert [dtype_of(parameter) for parameter in traced.function.params if is_buffer(parameter)] == ["bfloat16"] * 2


def test_dtypes_know_their_size() -> None:
    import ttexplore.language as T

    assert [(T.float16.bits, T.float16.bytes), (T.bool.bits, T.int4.bytes), (T.float8_e4m3fn.bits, T.half)] == [
        (16, 2),
        (8, 1),
        (8, "float16"),
    ]
    assert T.float32 == "float32"
    assert T.dtype(numpy.float32) == T.float32


def test_the_path_is_shown_as_it_was_given(kernel_file: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(kernel_file(KERNEL))
    monkeypatch.chdir(path.parent)
    traced = load_kernel("kernels.py", **SIZES)
    assert traced.file == "kernels.py"
    assert traced.source.lines[0].origins[0].span.file == "kernels.py"


def test_a_changed_file_is_read_again(kernel_file: Callable[..., str]) -> None:
    at = kernel_file(KERNEL) + "::add_one"
    first = load_kernel(at, **SIZES)
    kernel_file("# a new first line\n" + KERNEL.replace("+ 1", "+ 2"))
    second = load_kernel(at, **SIZES)
    assert second.first_line == first.first_line + 1
    assert second.source.lines[9].text == "            tile[i, j] = tile[i, j] + 2"


@pytest.mark.parametrize("character", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029", "\r", "\r\n"])
def test_lines_are_counted_as_python_counts_them(kernel_file: Callable[..., str], character: str) -> None:
    """str.splitlines divides at more characters than Python does; carriage returns end lines for both."""
    file = kernel_file(KERNEL)
    text = Path(file).read_text().replace("@tilelang.jit", f"# one {character}# two{character}# three\n@tilelang.jit")
    Path(file).write_text(text, encoding="utf-8", newline="")
    ends = 2 if "\r" in character else 0
    traced = load_kernel(file, **SIZES)
    assert traced.first_line == 5 + ends
    assert [line.text for line in traced.source.lines] == KERNEL.strip().splitlines()
    assert [line.origins[0].span.line for line in traced.source.lines[:2]] == [5 + ends, 6 + ends]
    wrong = Path(file).read_text(encoding="utf-8").replace("tile, C[", "None, C[")
    Path(file).write_text(wrong, encoding="utf-8")
    with pytest.raises(KernelError) as caught:
        load_kernel(file, **SIZES)
    assert caught.value.span is not None
    assert caught.value.span.line == 15 + ends


def test_a_file_with_a_byte_order_mark(kernel_file: Callable[..., str]) -> None:
    file = kernel_file(KERNEL)
    Path(file).write_bytes(b"\xef\xbb\xbf" + Path(file).read_bytes())
    traced = load_kernel(file, **SIZES)
    assert (traced.name, traced.first_line) == ("add_one", 4)


def test_a_file_beside_it_can_be_imported(kernel_file: Callable[..., str], tmp_path: Path) -> None:
    kernel_file(KERNEL, "shared_kernels.py")
    file = kernel_file("from shared_kernels import add_one\n")
    assert load_kernel(file, **SIZES).file == os.path.join(str(tmp_path), "shared_kernels.py")
    assert "shared_kernels" not in sys.modules


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\ny = 1 // 0\n", 4, "ZeroDivisionError: integer division or modulo by zero"),
        ("def f(:\n    pass\n", 3, "invalid syntax"),
        ("import module_that_does_not_exist\n", 3, "ModuleNotFoundError: No module named 'module_that_does_not_exist'"),
        ("import sys\nsys.exit(3)\n", 4, "SystemExit: 3"),
        ("def f():\n    raise KeyError('k')\nf()\n", 4, "KeyError: 'k'"),
    ],
)
def test_errors_in_the_file_name_its_line(kernel_file: Callable[..., str], text: str, line: int, message: str) -> None:
    file = kernel_file(text)
    with pytest.raises(UsageError) as caught:
        load_kernel(file + "::kernel")
    assert caught.value.message == message
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (file, line)
    assert caught.value.hint
    assert "tilelang" not in sys.modules


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("import not_there", "install not_there, or move the code that imports it to a file without kernels"),
        (
            "from . import neighbour",
            "import neighbouring files by their plain names: the file is not part of a package here",
        ),
        ("from tilelang.tenstorrent import apply_tt_default", "check the name against dir()"),
        ("1 // 0", "the file raised this while it was loaded; put what runs kernels under"),
    ],
)
@pytest.mark.filterwarnings("ignore::ImportWarning")
def test_what_to_do_about_a_file_that_raises(kernel_file: Callable[..., str], text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_module(kernel_file(text))
    assert caught.value.hint.startswith(hint)


def test_missing_files_and_kernels(kernel_file: Callable[..., str], tmp_path: Path) -> None:
    other = KERNEL.replace("add_one", "second") + "\ndef helper(x):\n    return x\n"
    file = kernel_file(KERNEL + other)
    cases = {
        str(tmp_path / "none.py") + "::k": (
            f"there is no file {tmp_path}/none.py",
            "give a path as file.py::kernel_name",
        ),
        f"{file}::add_two": (f"{file} has no kernel add_two", f"did you mean {file}::add_one?"),
        f"{file}::zzz": (f"{file} has no kernel zzz", "the file has add_one, second"),
        file: (f"{file}: which kernel is meant?", "the file has add_one, second"),
    }
    for at, (message, hint) in cases.items():
        with pytest.raises(UsageError) as caught:
            load_kernel(at)
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load_kernel(f"{path}::k")


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/kernels\xff.py"))
    path.write_text("")
    with pytest.raises(UsageError) as caught:
        load_kernel(f"{path}::k")
    assert caught.value.message.endswith("cannot be read: its name is not UTF-8")
    assert caught.value.hint == "give the file another name"


def test_a_kernel_called_with_data_is_told_how_to_run(kernel_file: Callable[..., str]) -> None:
    kernel = load_module(kernel_file(KERNEL)).add_one
    for call in (lambda: kernel([1.0], block=32), lambda: kernel.compile(**SIZES)([1.0])):
        with pytest.raises(UsageError, match="add_one cannot be called with data here") as caught:
            call()
        assert caught.value.hint == "run it with ttexplore.explore(add_one, ...).run([a, b])"
    with pytest.raises(AttributeError, match="a kernel has no get_profiler here"):
        kernel.compile(**SIZES).get_profiler()


def test_autotune_takes_the_first_configuration_with_a_note(kernel_file: Callable[..., str]) -> None:
    configs = "@tilelang.autotune(configs=[{'block': 16}, {'block': 32}])\n@tilelang.jit"
    file = kernel_file(KERNEL.replace("@tilelang.jit", configs))
    traced = load_kernel(file, M=64, N=64)
    assert said(traced) == ("autotune: not tuned here; took the first configuration: block=16",)
    assert isinstance(traced.function.body, tirx.For)
    assert constant(traced.function.body.extent) == 4
    assert said(load_kernel(file, **SIZES)) == ()


def test_an_autotuned_prim_func_is_explored_as_it_is(kernel_file: Callable[..., str]) -> None:
    file = kernel_file("""
        @tilelang.autotune(configs=[{"block": 16}])
        @T.prim_func
        def fill(C: T.Tensor((64, 64), T.float32)):
            with T.Kernel(2, 2) as (bx, by):
                block = T.alloc_shared((32, 32), T.float32)
                T.clear(block)
                T.copy(block, C[by * 32, bx * 32])
        """)
    traced = load_kernel(f"{file}::fill")
    assert traced.name == "fill"
    assert said(traced) == ()
    with pytest.raises(UsageError, match="takes no argument block"):
        load_kernel(f"{file}::fill", block=16)


def test_all_names_of_tilelang_exist() -> None:
    import ttexplore.language as T

    for name in [
        "atomic_add",
        "tma_copy",
        "alloc_barrier",
        "dynamic",
        "WSRole",
        "annotate_tt_layout",
        "Fragment",
        "use_swizzle",
        "print",
    ]:
        assert hasattr(T, name)
    assert not hasattr(T, "no_such_name")
    with pytest.raises(AttributeError, match=r"T.alloc_sharde does not exist; did you mean T.alloc_shared\?"):
        _ = T.alloc_sharde


ASKS = """
import torch
import tilelang.math
from tilelang.carver.arch import driver
from tilelang.math import next_power_of_2, cdiv
from tilelang.rocm.target import target_is_gfx950
from tilelang.cuda.target import target_has_ldmatrix
from tilelang.language.fp8 import determine_fp8_type

def sizes(value, n):
    @T.prim_func
    def copied(A: T.Tensor((n, 32), "float32"), B: T.Tensor((n, 32), "float32")):
        with T.Kernel(cdiv(n, 32)) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] * value
            T.copy(a, B[bx * 32, 0])
    return copied

def made(n=33):
    return sizes({value}, n)
"""


@pytest.mark.parametrize(
    ("value", "wormhole", "blackhole"),
    [
        ("next_power_of_2(33)", 64, 64),
        ("tilelang.next_power_of_2(1) + tilelang.math.next_power_of_2(64)", 65, 65),
        ("tilelang.cdiv(65, 32) + tilelang.math.cdiv(n, 32) + T.ceildiv(1, 2)", 6, 6),
        ("driver.get_num_sms()", 64, 110),
        ("min(driver.get_num_sms(), 100)", 64, 100),
        ("driver.get_shared_memory_per_block(format='kb')", 1393312 // 1024, 1461120 // 1024),
        ("driver.get_max_dynamic_shared_size_bytes()", 1393312, 1461120),
        ("torch.cuda.get_device_properties('cuda').multi_processor_count", 64, 110),
        ("torch.cuda.get_device_properties(0).major * 10 + torch.cuda.get_device_properties(0).minor", 80, 80),
        ("10 * torch.cuda.get_device_capability()[0] + torch.cuda.get_device_capability('cuda')[1]", 80, 80),
        ("driver.get_cuda_device_properties(0).shared_memory_per_block", 1393312, 1461120),
        ("3 if torch.cuda.is_available() else 4", 3, 3),
        ("3 if torch.version.hip is None and torch.cuda.device_count() == 1 else 4", 3, 3),
        ("2 if torch.float16 == T.float16 == 'float16' and torch.half.itemsize == 2 else 0", 2, 2),
        ("(determine_fp8_type() == 'float8_e4m3fn') + (determine_fp8_type('e5m2') == T.float8_e5m2)", 2, 2),
        ("isinstance(n, torch.Tensor) + isinstance(T.float16, torch.dtype)", 1, 1),
        ("2 if target_is_gfx950('hip') or target_has_ldmatrix(None) else 1", 1, 1),
    ],
)  # fmt: skip
def test_what_a_file_asks_is_answered(
    kernel_file: Callable[..., str], value: str, wormhole: int, blackhole: int
) -> None:
    """Functions of numbers compute; questions about the device are answered for the target."""
    file = kernel_file(ASKS.replace("{value}", value))
    for target, wanted in (("wormhole_n150", wormhole), ("blackhole_p150", blackhole)):
        exploration = ttexplore.explore(f"{file}::made", target=target)
        ones = numpy.ones((33, 32), numpy.float32)
        assert set(exploration.reference([ones])[0].ravel().tolist()) == {float(wanted)}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3 if torch.backends.cudnn.enabled else 4", "a condition is torch.backends.cudnn.enabled, from a module"),
        ("3 if torch.cuda.mem_get_info()[0] >= 9 else 4", "a compared value is torch.cuda.mem_get_info()"),
        ("3 if torch.get_num_threads() == 9 else 4", "a compared value is torch.get_num_threads(), from a module"),
        ("max(torch.get_num_threads(), 4)", "a compared value is torch.get_num_threads(), from a module"),
        ("int(torch.get_num_threads())", "a number is torch.get_num_threads(), from a module"),
        ("range(torch.get_num_threads())[0]", "a number is torch.get_num_threads(), from a module"),
        ("sum(torch.cuda.mem_get_info())", "the iterated value is torch.cuda.mem_get_info()"),
        ("9 in torch.cuda.mem_get_info()", "the searched value is torch.cuda.mem_get_info()"),
        ("len(torch.arange(4))", "the argument of len is torch.arange(), from a module"),
        ("torch.get_num_threads() * 2 + 1", "an operand of storing to a is torch.get_num_threads()"),
        ("torch.cuda.get_device_properties(0).warp_size", "wormhole_n150 has no warp_size"),
        ("next_power_of_2(T.dynamic('m'))", "next_power_of_2 works on numbers, not on m"),
        ("next_power_of_2(torch.get_num_threads())", "a number is torch.get_num_threads()"),
    ],
)  # fmt: skip
def test_what_nobody_knows_is_no_number(kernel_file: Callable[..., str], value: str, message: str) -> None:
    file = kernel_file(ASKS.replace("{value}", value))
    with pytest.raises(KernelError) as caught:
        load_kernel(f"{file}::made")
    assert message in caught.value.message
    assert caught.value.hint
    assert caught.value.span is not None
    lines = Path(file).read_text().splitlines()
    assert lines[caught.value.span.line - 1].strip() in (f"return sizes({value}, n)", "a[i, j] = a[i, j] * value")


def test_an_unknown_unit_of_memory() -> None:
    from ttexplore.language.machine import get_shared_memory

    with pytest.raises(UsageError, match="there is no unit 'gb'"):
        get_shared_memory(0, "gb")


def test_a_stand_in_is_no_number_in_a_file_either(kernel_file: Callable[..., str]) -> None:
    """Truth and comparisons there only decide what example files print."""
    load_module(kernel_file("import torch\nif torch.zeros(4) > 3 or torch.randn(4) == 1:\n    raise ValueError\n"))
    with pytest.raises(KernelError, match=r"a number is torch\.zeros") as caught:
        load_module(kernel_file("import torch\nBLOCKS = int(torch.zeros(4))\n"))
    assert caught.value.span is not None
    assert caught.value.span.line == 4


def test_errors_while_tracing_leave_no_builder_behind(kernel_file: Callable[..., str]) -> None:
    from ttexplore.language.guard.names import CURRENT

    with pytest.raises(KernelError):
        load_kernel(kernel_file(KERNEL.replace("tile, C[", "None, C[")), **SIZES)
    assert CURRENT.get() is None


def test_threads_load_files_at_once(kernel_file: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the files print is dropped, what others print meanwhile is not; nothing of the process is left changed."""
    file = kernel_file(f"import sys, time\nprint('lost')\ntime.sleep(0.05)\nsys.stdout.write('lost')\n{KERNEL}")
    streams, arguments, path, hooks = sys.stdout, sys.argv, list(sys.path), list(sys.meta_path)
    names: list[str] = []
    errors: list[BaseException] = []
    over = threading.Event()

    def load() -> None:
        try:
            names.extend(load_kernel(f"{file}::add_one", **SIZES).name for _ in range(5))
        except BaseException as error:
            errors.append(error)

    def talk() -> None:
        for number in range(10_000):
            print(f"kept {number}")
            time.sleep(0.001)
            if over.is_set():
                break

    threads = [threading.Thread(target=load) for _ in range(3)]
    talker = threading.Thread(target=talk)
    for one in (talker, *threads):
        one.start()
    for one in threads:
        one.join(60)
    over.set()
    talker.join(60)
    print("afterwards")
    assert errors == []
    assert names == ["add_one"] * 15
    assert (sys.stdout, sys.argv, sys.path, sys.meta_path) == (streams, arguments, path, hooks)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [*(f"kept {number}" for number in range(len(lines) - 1)), "afterwards"]
    assert len(lines) > 10


def test_a_stream_that_is_put_elsewhere_meanwhile_stays(
    kernel_file: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Another thread may redirect what is printed while a file loads, and a file may keep the stream that it saw."""
    before = sys.stdout
    kept = load_module(kernel_file("import sys\nkept = sys.stdout\nprint('lost')\n")).kept
    print("heard later", file=kept)
    assert capsys.readouterr().out == "heard later\n"
    other = io.StringIO()
    try:
        sys.modules["ttexplore_test_stream"] = types.SimpleNamespace(other=other)  # pyright: ignore[reportArgumentType]
        load_module(
            kernel_file("import sys\nsys.stdout = sys.modules['ttexplore_test_stream'].other\nprint('there')\n")
        )
        assert sys.stdout is other
        assert other.getvalue() == "there\n"
    finally:
        sys.stdout = before
        del sys.modules["ttexplore_test_stream"]


def test_a_file_may_explore_another_one(kernel_file: Callable[..., str], tmp_path: Path) -> None:
    inner = tmp_path / "inner.py"
    inner.write_text(Path(kernel_file(KERNEL)).read_text())
    outer = tmp_path / "outer.py"
    outer.write_text(f"import ttexplore as ttx\nname = ttx.explore({str(inner)!r}, M=32, N=32, block=32).kernel.name\n")
    assert load_module(outer).name == "add_one"


def test_stand_ins_are_for_the_thread_that_loads(kernel_file: Callable[..., str]) -> None:
    """Another thread that looks for a module that is not installed does not find one."""
    file = kernel_file("import time\ntime.sleep(0.3)\nimport modelscope.other\n")
    thread = threading.Thread(target=load_module, args=(file,))
    thread.start()
    time.sleep(0.1)
    with pytest.raises(ModuleNotFoundError):
        import modelscope  # noqa: F401  # pyright: ignore[reportMissingImports, reportUnusedImport]
    thread.join(60)


def test_a_statement_of_a_module_that_is_not_installed_is_not_left_out(kernel_file: Callable[..., str]) -> None:
    """What it does to blocks is not known: without it, the kernel would be another one."""
    file = kernel_file("""
from tilelang.cuda.intrinsics import Emitter

@T.prim_func
def product(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), "float32")
        emitter = Emitter(a)
        T.copy(A, a)
        emitter.multiply(a, a)
        T.copy(a, B)
""")
    with pytest.raises(KernelError) as caught:
        load_kernel(f"{file}::product")
    assert caught.value.message.startswith("what a statement calls is tilelang.cuda.intrinsics.Emitter().multiply()")
    assert caught.value.span is not None
    assert Path(file).read_text().splitlines()[caught.value.span.line - 1].strip() == "emitter.multiply(a, a)"


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("with ranges.only(1): T.copy(A, a)", "the context of a with statement"),
        ("ranges.flag[0] = 1", "what a statement"),
    ],
)
def test_a_context_of_a_module_that_is_not_installed_is_not_left_out(
    kernel_file: Callable[..., str], statement: str, what: str
) -> None:
    file = kernel_file(f"""
from tilelang.cuda import ranges

@T.prim_func
def product(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), "float32")
        T.copy(A, a)
        {statement}
        T.copy(a, B)
""")
    with pytest.raises(KernelError, match=what):
        load_kernel(f"{file}::product")


def test_marks_for_a_profiler_change_nothing(kernel_file: Callable[..., str]) -> None:
    text = """
from tilelang.tools.cuda import iket

@T.prim_func
def scaled(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as bx, iket.range("all"):
        a = T.alloc_shared((32, 32), "float32")
        T.copy(A, a)
        iket.mark("stored")
        T.copy(a, B)
"""
    unmarked = text.replace(', iket.range("all")', "").replace('        iket.mark("stored")\n', "")
    marked, plain = (
        ttexplore.explore(f"{kernel_file(one, name)}::scaled")
        for one, name in ((text, "marked.py"), (unmarked, "plain.py"))
    )
    assert marked.code["reader"] == plain.code["reader"]
    assert marked.code["writer"] == plain.code["writer"]
    assert marked.check().ok
