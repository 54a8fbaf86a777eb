"""A port beside the kernel that was written from it: which lines stand for which, and what the explorer is told."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore as ttx
from tests.porting.test_port import SOFTMAX
from ttexplore.control import FREE
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.porting.linked import linked_source, port_data
from ttexplore.porting.pattern import patterns
from ttexplore.porting.port import Port

TWO = SOFTMAX + SOFTMAX.partition("@triton.jit")[2].replace("def rows", "@triton.jit\ndef again", 1)


@pytest.fixture(scope="module")
def port() -> Port:
    return ttx.port(SOFTMAX)


@pytest.fixture(scope="module")
def exploration(port: Port) -> Exploration:
    return ttx.explore(port, rows=64, columns=64)


def linked(exploration: Exploration, port: Port) -> dict[str, list[str]]:
    """The texts of our lines that stand for each line of the source."""
    own = {line.origins[0].span.line: line.text.strip() for line in exploration.kernel.source.lines if line.origins}
    listing = linked_source(port, port.written, exploration.kernel.source)
    return {line.text.strip(): [own[one.span.line] for one in line.origins] for line in listing.lines if line.text}


def test_a_port_is_explored_and_stays_with_its_lowerings(port: Port, exploration: Exploration) -> None:
    assert exploration.kernel.file == "rows_ (ported)"
    assert exploration.run(backend="interpreter").passed
    (x,) = exploration.inputs()
    (given,) = exploration.reference([x])
    values = x.astype(np.float64)
    values = np.exp(values - values.max(axis=1, keepdims=True))
    assert np.allclose(given.astype(np.float64), values / values.sum(axis=1, keepdims=True), atol=1e-2)
    text = exploration.kernel.source.text
    others = [exploration.fork(stages=3), exploration.with_options({}), exploration.edited(f"{text}# more\n")]
    assert [one.ported for one in others] == [port] * 3


def test_constructs_lead_to_their_equivalents(port: Port, exploration: Exploration) -> None:
    found = linked(exploration, port)
    block = next(text for text in found if "tl.program_id" in text)
    assert [text.partition("(")[0] for text in found[block]] == ["with T.Kernel"]
    # Each function has its own, not all that its row of the table names.
    exponent = found["e = tl.exp(v - tl.max(v, axis=0))"]
    assert ["T.exp(" in text or "T.reduce_max(" in text for text in exponent] == [True, True]
    store = next(text for text in found if text.startswith("tl.store("))
    assert any("T.reduce_sum(" in text for text in found[store])
    assert any(text.startswith("T.copy(y_out") for text in found[store])
    assert found["import triton"] == []
    listing = linked_source(port, port.written, exploration.kernel.source)
    assert {one.kind for line in listing.lines for one in line.origins} == {"inferred"}


def test_another_kernel_of_the_source_has_no_links() -> None:
    port = ttx.port(TWO)
    assert [one.name for one in port.kernels] == ["rows", "again"]
    second = port["again"]
    assert second.written.name == "again"
    exploration = ttx.explore(port, rows=64, columns=64)
    listing = linked_source(port, port.written, exploration.kernel.source)
    begin = port.kernels[1].line
    assert any(line.origins for line in listing.lines[: begin - 1])
    assert not any(line.origins for line in listing.lines[begin - 1 :])
    with pytest.raises(UsageError, match="'others'"):
        port["others"]


def test_the_explorer_is_told_of_each_construct(port: Port, exploration: Exploration) -> None:
    data = exploration.gpu_data("", FREE)
    assert data["arch"] == "port"
    assert data["offered"][0] == ["port", "rows (Triton)"]
    told = data["port"]
    text = SOFTMAX.splitlines()
    for mark, (line, column, word, row) in zip(port.marks, told["marks"], strict=True):
        assert text[line - 1][column - 1 :].startswith(word)
        assert told["rows"][row]["name"] == mark.row
        assert told["rows"][row]["pitfall"] == patterns()[mark.row].pitfall
    # A page has it without being asked.
    assert [one["arch"] for one in exploration.lanes_data()] == ["port"]


def test_what_is_no_port_says_so() -> None:
    exploration = ttx.explore("notebooks/kernels/gemm.py::matmul", M=64, N=64, K=64, block_M=32, block_N=32)
    with pytest.raises(UsageError, match="the kernel is not a port"):
        exploration.gpu_data("port", FREE)


def test_a_port_without_a_kernel_of_a_family_is_refused() -> None:
    port = ttx.port(SOFTMAX.replace("tl.store(y + at + i, e / tl.sum(e, axis=0), mask=i < n)", "tl.device_print(e)"))
    with pytest.raises(UsageError, match="no kernel of the source is of a known family"):
        ttx.explore(port)


def test_the_proof_is_beside_the_kernel() -> None:
    port = ttx.port(SOFTMAX)
    data = port_data(port, port.written, ttx.explore(port, rows=32, columns=32).kernel.source, {})
    assert port.proof is not None
    assert data["remarks"] == [f"ported from rows: softmax; {port.summary}", *str(port.proof).split("\n")]
