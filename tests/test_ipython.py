"""The ``%%ttexplore`` cell, the stale banner, and completion, in a shell of this process."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

import ttexplore as ttx
import ttexplore.language
import ttexplore.tenstorrent
from tests.steps import LETTERS
from ttexplore.course.freezing import WIDGET_VIEW
from ttexplore.errors import UsageError
from ttexplore.exploration import Check, Exploration, Run
from ttexplore.session.runs import edited_listing
from ttexplore.session.widget import ExplorerWidget
from ttexplore.views.failures import ErrorCard

KERNEL = """
@T.prim_func
def copy(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
    with T.Kernel(2, 2) as (bx, by):
        block = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[by * 32, bx * 32], block)
        T.copy(block, B[by * 32, bx * 32])
"""
FACTORY = """
def made(n, dtype="bfloat16"):
    @T.prim_func
    def copy(A: T.Tensor((n, n), dtype), B: T.Tensor((n, n), dtype)):
        with T.Kernel(1) as bx:
            block = T.alloc_shared((32, 32), dtype)
            T.copy(A[0, 0], block)
            T.copy(block, B[0, 0])
    return copy
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    # Another environment may be the active one; these tests run in theirs all the same.
    config.InteractiveShell.warn_venv = False
    config.HistoryManager.hist_file = ":memory:"
    made: Any = InteractiveShell.instance(config=config)
    made.run_cell("%load_ext ttexplore")
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str, *, failed: str | None = None) -> list[Any]:
    """The objects that a cell displays. It goes through, or has `failed` with this one line instead of a traceback."""
    shown: list[Any] = []
    original = shell.display_formatter.format

    def keep(value: Any, *arguments: Any, **named: Any) -> Any:
        shown.append(value)
        return {"text/plain": repr(value)}, {}

    shell.display_formatter.format = keep
    try:
        with capture_output(display=False) as captured:
            result = shell.run_cell(cell, store_history=True)
    finally:
        shell.display_formatter.format = original
    if failed is None:
        result.raise_error()
    else:
        assert not result.success
        assert captured.stdout.splitlines()[-1] == f"✖ The cell failed: {failed}, see above."
        assert "Traceback" not in captured.stdout + captured.stderr
    return shown


def card(shell: Any, cell: str, kind: str) -> ErrorCard:
    (shown,) = run(shell, cell, failed=kind)
    assert isinstance(shown, ErrorCard), shown
    assert "Traceback" not in repr(shown)
    assert shown._repr_html_().startswith('<div class="ttx"')
    return shown


def test_a_cell_is_explored_checked_and_run(shell: Any) -> None:
    exploration, check, result = run(shell, f"%%ttexplore --target blackhole_p100 --check --run{KERNEL}")
    assert isinstance(exploration, Exploration)
    assert exploration is shell.user_ns["ex"]
    assert exploration.target.name == "blackhole_p100"
    assert isinstance(check, Check)
    assert isinstance(result, Run)
    assert check.ok
    assert result.passed
    # The line of the magic counts.
    assert exploration.kernel.first_line == 2
    assert exploration.kernel.file == f"cell {shell.execution_count - 1}"


def test_an_exploration_is_two_outputs(shell: Any) -> None:
    """The explorer, and below it the page, which is all that is left of it elsewhere."""
    with capture_output() as captured:
        shell.run_cell(f"%%ttexplore{KERNEL}").raise_error()
        shell.run_cell("ex").raise_error()
    shown = [output.data for output in captured.outputs]
    exploration = shell.user_ns["ex"]
    for place, page in (shown[:2], shown[2:]):
        assert set(place) == {WIDGET_VIEW, "text/html", "text/plain"}
        assert place["text/plain"] == repr(exploration)
        # Neither text nor an element.
        assert re.fullmatch("<!--[^>]*-->", place["text/html"])
        assert set(page) == {"text/html"}
        assert exploration._repr_html_() in page["text/html"]
        assert len(json.dumps(page).encode()) < 150_000
    assert shown[0][WIDGET_VIEW] != shown[2][WIDGET_VIEW]
    assert shown[1] == shown[3], "two runs print the same bytes"


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("kernels/gemm.py::matmul", {"M": 1024, "N": 1024, "K": 1024}),
        ("gallery/attention.py::attention_with_sink", {}),
    ],
)
def test_what_a_notebook_saves_of_a_large_kernel_is_small(shell: Any, kernel: str, arguments: dict[str, Any]) -> None:
    with capture_output() as captured:
        exploration = ttx.explore(f"{Path(__file__).parents[1] / 'notebooks' / kernel}", **arguments)
        exploration._ipython_display_()
    assert len(captured.outputs) == 2
    assert sum(len(json.dumps(output.data).encode()) for output in captured.outputs) < 150_000


def test_names_arguments_and_options(shell: Any) -> None:
    cell = f"%%ttexplore made n=32 dtype=float32 --option stages=3 --grid 2x2 -o mine{FACTORY}{KERNEL}"
    (exploration,) = run(shell, cell)
    assert shell.user_ns["mine"] is exploration
    assert exploration.options == {"stages": 3}
    assert exploration.target.compute_grid == (2, 2)
    assert exploration.plan.layouts[0].dtype == "float32"
    assert exploration.plan.layouts[0].shape == (32, 32)


@pytest.mark.parametrize(
    ("cell", "kind", "message", "line"),
    [
        ("%%ttexplore\nx = 1", "UsageError", "the cell defines no kernel", 0),
        (f"%%ttexplore cop{KERNEL}", "UsageError", "there is no kernel 'cop'", 0),
        (f"%%ttexplore copy twice{KERNEL}", "UsageError", "the argument 'twice' has no value", 0),
        (f"%%ttexplore --targt x{KERNEL}", "UsageError", "unrecognized arguments: --targt", 0),
        (f"%%ttexplore target=x{KERNEL}", "UsageError", "target is not a kernel argument", 0),
        (f"%%ttexplore kernel=x{KERNEL}", "UsageError", "takes no argument", 0),
        (f"%%ttexplore --target x{KERNEL}", "UsageError", "there is no target 'x'", 0),
        (f"%%ttexplore 'copy{KERNEL}", "UsageError", "the line of %%ttexplore cannot be parsed", 0),
        (f"%%ttexplore made{FACTORY}", "UsageError", "needs n", 0),
        ("%%ttexplore\n\nx = 1 / 0", "KernelError", "ZeroDivisionError: division by zero", 3),
        ("%%ttexplore\nx = (1", "KernelError", "'(' was never closed", 2),
        (f"%%ttexplore{KERNEL.replace(', bx * 32], block', '], block')}", "KernelError", "A has 2 dimensions", 6),
    ],
)
def test_what_is_wrong_is_a_card(shell: Any, cell: str, kind: str, message: str, line: int) -> None:
    shell.user_ns["ex"] = "that of an earlier cell"
    record = card(shell, cell, kind).record
    assert record.kind == kind
    assert message in record.message
    assert record.hint
    assert (record.span.line if record.span else 0) == line
    if line:
        assert record.span is not None
        assert record.span.file == f"cell {shell.execution_count - 1}"
    if kind == "KernelError":
        assert "ex" not in shell.user_ns


def test_a_refused_kernel_is_shown_with_its_failed_step(shell: Any) -> None:
    large = KERNEL.replace("64, 64", "8192, 8192").replace("32", "4096")
    (exploration,) = run(shell, f"%%ttexplore --check{large}", failed="A2 rejected the kernel")
    assert exploration.error is not None
    assert exploration is shell.user_ns["ex"]
    assert "failed at" in repr(exploration)


def test_a_wrong_check_or_run_ends_the_cell(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ttx.explore("notebooks/kernels/gemm.py::matmul", M=32, N=32, K=32, block_M=32, block_N=32)
    check = right.check()
    bad = dataclasses.replace(check.results[3], passed=False)
    wrong_check = Check((*check.results[:3], bad, *check.results[4:]))
    wrong_run = dataclasses.replace(right.run(backend="interpreter"), passed=False)
    monkeypatch.setattr(Exploration, "check", lambda self: wrong_check)
    monkeypatch.setattr(Exploration, "run", lambda self: wrong_run)
    shown = run(shell, f"%%ttexplore --check --run{KERNEL}", failed=f"{bad.step} changed the result")
    assert shown[1:] == [wrong_check]
    shown = run(shell, f"%%ttexplore --run{KERNEL}", failed="the run did not give the reference's result")
    assert shown[1:] == [wrong_run]


def test_the_cells_after_a_failed_one_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As "Run all cells" of a notebook."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cells = [new_code_cell(source) for source in ("%load_ext ttexplore", "%%ttexplore\nx = 1", "print('after')")]
    notebook = new_notebook(cells=cells)
    client = NotebookClient(notebook, kernel_name="python3", timeout=300)
    with pytest.raises(CellExecutionError, match="The cell failed: UsageError, see above"):
        client.execute()
    shown, failed = notebook.cells[1].outputs
    assert "the cell defines no kernel" in shown.data["text/html"]
    assert failed.traceback == ["✖ The cell failed: UsageError, see above."]
    assert notebook.cells[2].outputs == []


def test_an_error_of_a_call_is_a_card_and_except_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    wrong = "ttx.explore('nowhere.py::kernel')"
    sources = (
        "import ttexplore as ttx",
        f"try:\n    {wrong}\nexcept ttx.errors.UsageError as error:\n    print('caught', error.code)",
        f"x = 1\ndef call():\n    return {wrong}\ncall()", "%tb", "1 / 0", "1",
    )  # fmt: skip
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(notebook, kernel_name="python3", timeout=300, allow_errors=True).execute()
    _, caught, card, whole, other, after = (cell.outputs for cell in notebook.cells)
    assert [one.output_type for one in caught] == ["stream"]
    assert caught[0].text.startswith("caught ")
    shown, failed = card
    assert "nowhere.py" in shown.data["text/html"]
    assert 'class="ttx"' in shown.data["text/html"]
    assert (failed.ename, "nowhere.py" in failed.evalue) == ("UsageError", True)
    assert failed.traceback == ["✖ UsageError, see above, at line 4: call(). %tb prints the traceback."]
    assert "Traceback (most recent call last)" in "".join(whole[0].get("traceback", ()) or whole[0].text)
    assert other[0].ename == "ZeroDivisionError"
    assert after[0].data["text/plain"] == "1"


def test_the_banner_of_a_changed_kernel(shell: Any) -> None:
    run(shell, f"%%ttexplore{KERNEL}")
    first, second = shell.user_ns["ex"].widget(), shell.user_ns["ex"].widget()
    run(shell, "x = 1")
    run(shell, f"%%ttexplore -o other --target blackhole_p100{KERNEL}")
    assert first.stale == ""
    run(shell, f"%load_ext ttexplore\n{KERNEL.replace('block', 'tile')}")
    assert first.stale == second.stale
    assert first.stale.startswith("copy has changed since this exploration was made")
    first.stale = second.stale = ""
    second.close()
    run(shell, f"%load_ext ttexplore\n{KERNEL.replace('block', 'tile')}")
    assert (bool(first.stale), second.stale) == (True, "")


def test_the_explorer_of_a_cell_that_runs_again_is_where_the_old_one_was(shell: Any) -> None:
    made: list[ExplorerWidget] = []
    shell.user_ns["explorers"] = made

    def cell(identity: str, kernel: str) -> list[dict[str, Any]]:
        made.clear()
        again = "import ttexplore\nfor _ in range(2):\n    explorers.append(ttexplore.explore(copy).widget())"
        shell.run_cell(f"{kernel}\n{again}", cell_id=identity).raise_error()
        return [one.place for one in made]

    assert cell("one", f"import ttexplore.language as T{KERNEL}") == [{}, {}]
    made[0].here = {"tab": "Code", "step": "C1", "pin": "6,7", "file": "reader.cpp"}
    assert cell("two", KERNEL) == [{}, {}]
    # A cell that fails in between changes nothing; a new line moves what is pinned, a changed one keeps its pin.
    shell.run_cell("explorers.clear()\n1 / 0", cell_id="one")
    moved = KERNEL.replace("        block", "        # a tile\n        block").replace("A[by", "A[0 + by")
    assert cell("one", moved) == [{"tab": "Code", "step": "C1", "pin": "6,7", "file": "reader.cpp"}, {}]
    # The pins of an edited text are those of its lines.
    made[0].here = {"tab": "Steps", "pin": "7", "text": moved.strip()}
    made[1].here = {"tab": "Run", "pin": ""}
    assert cell("one", f"x = 1{moved}") == [{"tab": "Steps", "pin": "8"}, {"tab": "Run", "pin": ""}]


def test_completion_knows_steps_and_code() -> None:
    namespace: dict[str, Any] = {}
    exec("import ttexplore.language as T", namespace)
    steps = ttx.explore("notebooks/kernels/gemm.py::matmul", M=64, N=64, K=64).steps
    assert {"B1", "grid_to_core_grid"} <= set(steps._ipython_key_completions_())
    assert {"B1", "grid_to_core_grid", "index"} <= set(dir(steps))
    assert steps.B1 is steps["B1"]
    with pytest.raises(AttributeError, match="there is no step 'Z9'"):
        _ = steps.Z9


def answers(widget: Any, monkeypatch: pytest.MonkeyPatch, **question: Any) -> dict[str, Any]:
    """What the explorer answers in the end, in this thread."""
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", lambda message, buffers=None: told.append(message))
    widget._answer({"id": "1", "seed": 0, "inputs": "yours", "names": "", **question}, threading.Event())
    return told[-1]


def test_the_explorer_runs_on_arrays_of_the_notebook(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shell, f"%%ttexplore{KERNEL}")
    run(shell, "import numpy as np\nmine = np.full((64, 64), 2.0)\nnamed = {'A': mine}\nflat = mine.ravel()")
    widget = shell.user_ns["ex"].widget()
    for names in ("mine", "named"):
        asked: dict[str, Any] = {"do": "run", "backend": "interpreter", "names": names}
        assert answers(widget, monkeypatch, **asked)["passed"]
        assert answers(widget, monkeypatch, do="check", names=names)["first_bad"] is None
        assert answers(widget, monkeypatch, do="record", core="0,0", names=names)["state"] == "done"
    for names, message in (
        ("mime", "there is no variable 'mime'"),
        ("mine * 2", "inputs are looked up by name, and 'mine * 2' is not a name"),
        ("mine, mine", "the number of inputs is 2, but the kernel takes 1"),
        ("flat", "input 0 (A) has the shape (4096,), but the kernel takes (64, 64)"),
    ):
        answer = answers(widget, monkeypatch, do="run", backend="interpreter", names=names)
        assert answer["state"] == "failed"
        assert answer["error"]["message"] == [message]
    # The kind is no variable, whatever the notebook holds.
    shell.user_ns["ones"] = "another"
    assert answers(widget, monkeypatch, do="run", backend="interpreter", inputs="ones")["passed"]
    assert [kind[0] for kind in widget.inputs][:3] == ["random", "uniform", "ones"]


def test_wrong_words_in_the_explorer_are_answered_as_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    exploration = ttx.explore("notebooks/kernels/gemm.py::matmul", M=64, N=64, K=64)
    widget, target = exploration.widget(), exploration.target.name
    for options in ({"cores": "banana"}, {"stages": "1.5"}, {"work_lists": "5"}, {"math_fidelity": "hifi"}):
        with pytest.raises(UsageError) as caught:
            exploration.fork(**options)
        answer = answers(widget, monkeypatch, do="fork", options=options, target=target)
        assert answer["error"]["kind"] == "UsageError"
        assert answer["error"]["message"] == [caught.value.message]
    asked: dict[str, Any] = {"cores": "8x4", "stages": "", "policy": "strided"}
    assert answers(widget, monkeypatch, do="fork", options=asked, target=target)["state"] == "done"
    for seed in (None, -1, 1.5, "x"):
        answer = answers(widget, monkeypatch, do="run", backend="interpreter", inputs="random", seed=seed)
        assert answer["error"]["message"] == [f"seed is {seed!r}"]


def test_an_edited_kernel_runs_and_its_deadlock_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    exploration = ttx.explore("notebooks/kernels/gemm.py::matmul", M=64, N=64, K=256)
    text = exploration.code["compute"].text
    kept = [line for line in text.splitlines() if ".pop_front(" not in line]
    widget = exploration.widget()
    asked = {"do": "run", "backend": "emulator", "inputs": "random"}
    assert answers(widget, monkeypatch, code={"compute": f"// edited\n{text}"}, **asked)["passed"]
    stuck = answers(widget, monkeypatch, code={"compute": "\n".join(kept)}, **asked)
    assert stuck["error"]["kind"] == "Deadlock"
    assert stuck["error"]["drawing"].startswith("<svg")
    assert answers(widget, monkeypatch, code={}, **asked)["passed"]
    # What is recorded is the edited kernel too.
    asked = {"do": "record", "core": "0,0", "inputs": "random"}
    assert answers(widget, monkeypatch, code={"compute": "\n".join(kept)}, **asked)["state"] == "done"
    assert answers(widget, monkeypatch, code={"compute": "void"}, **asked)["error"]["kind"] == "KernelFault"


@pytest.mark.parametrize("magic", [False, True])
def test_lines_of_a_cell_are_counted_as_python_counts_them(shell: Any, magic: bool) -> None:
    """IPython divides a cell at a form feed and at U+2028, too."""
    text = KERNEL.lstrip().replace("2, 2", "2, 1")
    cell = "# zero\n# one\u2028two \f three\n" + text
    if magic:
        run(shell, "%%ttexplore\n" + cell)
    else:
        run(shell, "import ttexplore, ttexplore.language as T\nex = None")
        run(shell, cell + "ex = ttexplore.explore(copy)")
    kernel = shell.user_ns["ex"].kernel
    assert kernel.first_line == 3 + magic
    assert kernel.source.text == text


def test_the_lines_of_an_edited_kernel(shell: Any) -> None:
    run(shell, "%%ttexplore\n" + KERNEL)
    listing = shell.user_ns["ex"].files["reader.cpp"]
    edited = edited_listing(listing, "// one \f two\n" + listing.text)
    assert [line.origins for line in edited.lines] == [(), *(line.origins for line in listing.lines)]


PASTED = """import tilelang
import tilelang.language as T
from tilelang import language as T_again
from tilelang.profiler import do_bench
import tilelang.tenstorrent as tt
import tilelang.math

@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True})
def scaled(M, N, block=32, dtype=T.float32):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            T.copy(A[by * block, bx * block], a)
            for i, j in T.Parallel(block, block):
                a[i, j] = a[i, j] * tilelang.math.next_power_of_2(3)
            T.copy(a, B[by * block, bx * block])
    return main
"""


@pytest.fixture
def without_tilelang() -> Iterator[None]:
    """No cell of another test has left TileLang's name or its finder behind."""

    def clean() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tilelang"]:
            del sys.modules[name]

    clean()
    finders = list(sys.meta_path)
    yield
    clean()
    sys.meta_path[:] = finders


@pytest.mark.usefixtures("without_tilelang")
def test_pasted_code_in_a_cell(shell: Any) -> None:
    run(shell, PASTED)
    run(shell, "import ttexplore\nex = ttexplore.explore(scaled, M=64, N=64)\nrun = ex.run(backend='interpreter')")
    names = shell.user_ns
    assert names["T"] is names["T_again"] is ttexplore.language
    assert names["tt"] is names["tilelang"].tenstorrent is ttexplore.tenstorrent
    assert names["ex"].check()
    assert (names["run"].outputs[0] == names["ex"].inputs()[0] * 4).all()
    assert names["ex"].kernel.file.startswith("cell ")
    run(shell, "import tilelang\nfrom tilelang.language import Kernel\nmod = tilelang.tt.run_pipeline(scaled(64, 64))")
    assert names["mod"].steps == len(LETTERS)


@pytest.mark.usefixtures("without_tilelang")
def test_pasted_code_below_the_magic(shell: Any) -> None:
    """With what TileLang's files import beside it, which only stands in for as long as the cell runs."""
    cell = "%%ttexplore scaled M=64 N=64 --check\nimport einops\nimport triton.language as tl\n" + PASTED
    exploration, check = run(shell, cell)
    assert isinstance(exploration, Exploration)
    assert check
    assert "einops" not in sys.modules
    assert "triton" not in sys.modules


@pytest.mark.usefixtures("without_tilelang")
def test_only_tilelang_is_there_in_other_cells(shell: Any) -> None:
    for name in ("einops", "tilelangs"):
        result = shell.run_cell(f"import {name}")
        assert isinstance(result.error_in_exec, ModuleNotFoundError)
    result = shell.run_cell("from tilelang.tenstorrent import apply_tt_default")
    assert isinstance(result.error_in_exec, ImportError)
    result = shell.run_cell("import tilelang\ntilelang.tenstorrent.apply_tt_default")
    assert "did you mean apply_tt_defaults?" in str(result.error_in_exec)


@pytest.mark.usefixtures("without_tilelang")
def test_an_installed_tilelang_is_found_first(shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "tilelang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("class PrimFunc:\n    pass\nkernel = PrimFunc()\n")
    monkeypatch.syspath_prepend(str(package.parent))
    run(shell, "import tilelang\nkernel = tilelang.kernel")
    assert shell.user_ns["tilelang"].__file__ == str(package / "__init__.py")
    with pytest.raises(UsageError, match="PrimFunc is a kernel of the installed TileLang or TVM"):
        ttx.explore(shell.user_ns["kernel"])
