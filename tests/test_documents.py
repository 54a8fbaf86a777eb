"""What leaves the notebook: reports, graphs, frozen notebooks; and that the committed notebooks are documents."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.views.samples import HOSTILE, PLAN
from ttexplore.cli import main
from ttexplore.course.freezing import WIDGET_VIEW, freeze
from ttexplore.errors import BackendError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.plan import GraphEdge, GraphNode, TileGraph
from ttexplore.session.results import Graph
from ttexplore.views.figures.dot import dataflow_dot

REPOSITORY = Path(__file__).parents[1]
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return ttx.explore(gemm(64, 64, 64, 32, 32, 32))


def test_a_report_is_one_small_page(exploration: Exploration, tmp_path: Path) -> None:
    page = exploration.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 1_000_000
    assert "connect-src" not in page
    assert "default-src 'none'" in page
    assert '"recorded_run": "\\u003cdiv' in page
    assert '"recorded_run": ' not in exploration.report(tmp_path / "bare.html", run=False).read_text(encoding="utf-8")
    saved = ttx.load(exploration.save(tmp_path / "gemm.ttx"))
    assert saved.report(tmp_path / "again.html", run=False).read_bytes() != b""
    with pytest.raises(UsageError, match="cannot be written"):
        exploration.report(tmp_path, run=False)


def test_a_report_of_a_failed_lowering(tmp_path: Path) -> None:
    failed = ttx.explore(gemm(4096, 4096, 4096, 2048, 2048, 2048))
    assert '"recorded_run": ' not in failed.report(tmp_path / "report.html").read_text(encoding="utf-8")


def test_graphs_are_text(exploration: Exploration, tmp_path: Path) -> None:
    dataflow, passes = exploration.dot(), exploration.dot("passes")
    assert str(dataflow) == str(ttx.explore(gemm(64, 64, 64, 32, 32, 32)).dot())
    assert '"A" -> "reader"' in str(dataflow)
    assert '"A0.1" -> "A1";' in str(passes)
    assert 'label="B1.1 assign_work_items\\ndecides: plan +' in str(passes)
    assert 'label="B2 grid_to_core_grid\\nrewrites: IR +' in str(passes)
    assert dataflow.save(tmp_path / "a.dot").read_text(encoding="utf-8") == str(dataflow)
    with pytest.raises(UsageError, match="there is no graph 'cores'"):
        exploration.dot("cores")  # pyright: ignore[reportArgumentType]
    failed = ttx.explore(gemm(4096, 4096, 4096, 2048, 2048, 2048))
    assert 'failed: ResourceError", style=bold' in str(failed.dot("passes"))
    with pytest.raises(UsageError, match="the tile dataflow is not decided yet"):
        failed.dot()


def test_hostile_names_are_quoted() -> None:
    name = HOSTILE + '\\" -> evil [label="'
    text = dataflow_dot(PLAN.replace(graph=TileGraph((GraphNode(name, "tensor"),), (GraphEdge(name, name, 1),))))
    quoted = """</td><script>alert('x')</script>\\"&⟨U+202E⟩⟨U+200B⟩⟨U+0007⟩\\\\\\" -> evil [label=\\\""""
    assert f'  "{quoted}" -> "{quoted}" [label="1"];\n' in text
    if shutil.which("dot"):
        assert "evil" in Graph(text).svg()


def test_without_dot_a_graph_is_its_text(exploration: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = exploration.dot()
    if shutil.which("dot"):
        assert ElementTree.fromstring(graph.svg()).tag.endswith("svg")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert graph._repr_svg_() is None
    assert repr(graph) == str(graph)
    with pytest.raises(BackendError, match="Graphviz's program dot is not installed"):
        graph.save("unwritten.svg")


def notebook(*outputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "cells": [
            {"cell_type": "markdown", "source": ["é"], "metadata": {}},
            {"cell_type": "code", "source": ["ex"], "metadata": {}, "outputs": list(outputs), "execution_count": 1},
        ],
        "metadata": {"widgets": {"state": {}}, "kernelspec": {"name": "python3"}},
        "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip


def test_frozen_notebooks_have_no_widgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    static = {"text/html": "<p>", "text/plain": "ex"}
    page = {"data": {WIDGET_VIEW: {"model_id": "1"}, **static}, "output_type": "execute_result"}
    # Nothing stands beside this one: taking it out would leave nothing.
    only = {"data": {WIDGET_VIEW: {"model_id": "2"}}, "output_type": "display_data"}
    stream = {"output_type": "stream", "text": ["x"]}
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps(notebook(page, only, stream)), encoding="utf-8")
    assert main(["freeze", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 1 widget removed\n"
    frozen = json.loads(file.read_text(encoding="utf-8"))
    assert frozen["cells"][1]["outputs"][0]["data"] == static
    assert frozen["cells"][1]["outputs"][1:] == [only, stream]
    assert frozen["metadata"] == {"kernelspec": {"name": "python3"}}
    before = file.read_bytes()
    assert freeze(file) == 0
    assert file.read_bytes() == before


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 3}', '{"cells": [3], "metadata": {}}', '{"cells": []}'])
def test_what_is_no_notebook_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"a\.ipynb is not a notebook"):
        freeze(file)
    with pytest.raises(UsageError, match="there is no file"):
        freeze(tmp_path / "b.ipynb")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_committed_notebooks_are_documents(path: Path) -> None:
    """Whoever reads them on the web sees every output, and none needs a kernel."""
    data = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in data["metadata"], "run: ttexplore freeze"
    outputs = [output for cell in data["cells"] for output in cell.get("outputs", [])]
    assert outputs
    for cell in data["cells"]:
        if cell["cell_type"] == "code":
            assert cell["execution_count"], f"not run: {cell['source']}"
    for output in outputs:
        assert output["output_type"] != "error"
        assert WIDGET_VIEW not in output.get("data", {}), "run: ttexplore freeze"


def test_the_commands(exploration: Exploration, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = ["notebooks/kernels/gemm.py::matmul", "M=128", "N=128", "K=64"]
    file, page, folder = str(tmp_path / "gemm.ttx"), str(tmp_path / "gemm.html"), str(tmp_path / "out")
    assert main(["save", *kernel, "-o", file]) == 0
    assert main(["show", file]) == 0
    assert "matmul" in capsys.readouterr().out
    assert main(["run", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    assert main(["run", file, "--seed", "1"]) == 1
    assert "there is no reference for these inputs" in capsys.readouterr().out
    assert main(["report", file, "--no-run", "-o", page]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert main(["export", file, "--dot", "-o", folder]) == 0
    assert {"dataflow.dot", "passes.dot", "reader.cpp"} <= {path.name for path in Path(folder).iterdir()}
    assert main(["show", file, "M=3"]) == 2
    assert "is a saved exploration and takes no arguments, options or target" in capsys.readouterr().err
    assert main(["check", file]) == 2


def test_the_files_of_developing_exist() -> None:
    """What docs/developing.md sends to: files and folders from the root of the repository."""
    page = (REPOSITORY / "docs" / "developing.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|ttexplore|widgets)/[\w./-]+)`", page)
    assert len(named) > 30
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
