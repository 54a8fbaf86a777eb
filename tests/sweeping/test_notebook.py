"""A sweep in the cell of a real Jupyter kernel: its progress, and what is left of it when the cell is interrupted."""

from __future__ import annotations

import ast
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sweeping.conftest import GEMM
from ttexplore.sweeping.progress import one_line

_PATIENCE_SECONDS = 300
_SPACE: dict[str, list[object]] = {
    "block_M": [32, 64], "block_N": [32, 64], "block_K": [32, 64], "policy": ["contiguous", "strided"],
    "accumulate": ["reload", "l1"], "stages": [1, 2, 3],
}  # fmt: skip
_POINTS = 96


class Notebook:
    """A kernel, and what its cells show."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, interrupt_at: str = "") -> tuple[str, list[tuple[str, dict[str, str]]]]:
        """What a cell printed, and its outputs and their changes. It is interrupted when it shows `interrupt_at`."""
        cell = self.client.execute(code)
        printed, shown = "", []
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != cell:
                continue
            kind, content = message["msg_type"], message["content"]
            match kind:
                case "stream":
                    printed += content["text"]
                case "display_data" | "update_display_data":
                    data = content["data"]
                    shown.append((kind, data))
                    if interrupt_at and interrupt_at in data.get("text/plain", ""):
                        interrupt_at = ""
                        self.manager.interrupt_kernel()
                case "error":
                    pytest.fail("\n".join(content["traceback"]), pytrace=False)
                case "status" if content["execution_state"] == "idle":
                    return printed, shown
                case _:
                    pass
        pytest.fail(f"the cell did not end; it printed {printed!r} and showed {shown[-3:]}", pytrace=False)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    manager_module = pytest.importorskip("jupyter_client.manager")
    cache = tmp_path_factory.mktemp("cache")
    path = str(Path(__file__).parents[2])
    manager, client = manager_module.start_new_kernel(kernel_name="python3")
    try:
        found = Notebook(manager, client)
        found.run(
            f"import os, sys\nos.environ['XDG_CACHE_HOME'] = {str(cache)!r}\nsys.path.insert(0, {path!r})\n"
            "import ttexplore as ttx\nfrom ttexplore.sweeping import sweep\nsweep._TELL_SECONDS = 0.0"
        )
        yield found
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def swept(workers: int, more: str = "") -> str:
    sizes = "M=128, N=128, K=128"
    return (
        f"found = ttx.sweep({GEMM!r}, {_SPACE!r}, prove=0, workers={workers}, {sizes}{more})\n"
        "print([found.complete, *(row['state'] for row in found.table())])"
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_cell_keeps_what_is_done(notebook: Notebook, workers: int) -> None:
    printed, shown = notebook.run(swept(workers, ", fresh=True"), interrupt_at="] 24 of")
    complete, *states = ast.literal_eval(printed)
    assert not complete
    assert len(states) == _POINTS
    assert {*states} == {"verified", "not done"}
    assert 24 <= states.count("verified") < _POINTS
    # One output, whose text is replaced; in the end nothing is left of it.
    assert shown[0] == ("display_data", {})
    assert {kind for kind, _ in shown[1:]} == {"update_display_data"}
    assert shown[1][1] == {"text/plain": f"[{'.' * 24}] 0 of {_POINTS} points, 0 refused"}
    assert shown[-1] == ("update_display_data", {})


def test_a_quiet_cell_shows_nothing(notebook: Notebook) -> None:
    code = f"print(len(ttx.sweep({GEMM!r}, {{'stages': [1]}}, prove=0, M=64, N=64, K=64, progress=None).points))"
    assert notebook.run(code) == ("1\n", [])


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with one_line() as told:
        assert told is None
    assert capsys.readouterr() == ("", "")
