"""What Python sends to the page has the types that the page's modules are checked against: `widgets/messages.d.ts`."""

from __future__ import annotations

import json
import subprocess
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.porting.test_port import SOFTMAX
from ttexplore import Exploration, explore, port
from ttexplore.control import FREE
from widgets.build import FOLDER, NODE, TSC

_KERNEL = "notebooks/kernels/gemm.py::matmul"


def faults(folder: Path, messages: list[tuple[str, Any]]) -> list[str]:
    """What TypeScript has against values, each with the type that it should have; a field too many is a fault, too."""
    types = "Answers, Gpu, Lowering, Message, Recording, Traits"
    lines = [f'import type {{ {types} }} from "{(FOLDER / "messages.js").as_posix()}";']
    lines += [f"export const m{i}: {kind} = {json.dumps(value)};" for i, (kind, value) in enumerate(messages)]
    path = folder / "messages_of_python.ts"
    path.write_text("\n".join(lines), encoding="utf-8")
    command = [*NODE, str(TSC), "--noEmit", "--strict", "--lib", "es2023", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return ran.stdout.splitlines()


@pytest.fixture(scope="module")
def gemm() -> Exploration:
    return explore(_KERNEL, M=64, N=64, K=64, block_M=32, block_N=32, block_K=32)


def answers(exploration: Exploration, monkeypatch: pytest.MonkeyPatch, **question: Any) -> list[dict[str, Any]]:
    """What is sent back to a question, with the bytes beside it unpacked as `buffer`."""
    widget = exploration.widget()
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", lambda message, buffers=None: sent.append({**message, "buffer": buffers}))
    widget._answer({"id": "1", "variant": "", "inputs": "ones", "seed": 0, "names": "", **question}, threading.Event())
    return sent


def lowerings(exploration: Exploration) -> list[Any]:
    """One that ends well, one that fails, and one with lists of work."""
    refused = explore(_KERNEL, M=1024, N=1024, K=1024, block_M=1024, block_N=1024, block_K=1024)
    assert refused.error is not None
    lists = exploration.fork(policy="explicit", work_lists={(0, 0): [0, 1], (1, 0): [2, 3]})
    return [one.data for one in (exploration, refused, lists)]


def broken(exploration: Exploration) -> list[str]:
    """A compute kernel that ends in a deadlock, and one that does not compile; none where there is no compiler."""
    if next(one["missing"] for one in exploration.backends if one["name"] == "emulator"):
        return []
    text = exploration.code["compute"].text
    pop = next(line for line in text.splitlines() if "pop_front" in line)
    return [text.replace(f"{pop}\n", "", 1), text.replace(pop, "wrong;", 1)]


def answered(exploration: Exploration, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    target = exploration.target.name
    questions: list[dict[str, Any]] = [
        {"do": "run", "backend": "interpreter", "arithmetic": "exact", "code": {}},
        {"do": "check"},
        {"do": "estimate"},
        {"do": "trace", "core": "0,0"},
        {"do": "gpu", "arch": ""},
        {"do": "gpu", "arch": "sm_1"},
        {"do": "module"},
        {"do": "fork", "options": {"stages": "3"}, "arguments": {}, "target": target},
        {"do": "fork", "options": {}, "arguments": {"block_M": "32"}, "target": target},
        {"do": "fork", "options": {"stages": "no number"}, "arguments": {}, "target": target},
        {"do": "advice", "variant": ""},
        {"do": "edit", "text": exploration.kernel.source.text.replace("block_K=32", "block_K=64"), "unused": []},
        {"do": "edit", "text": exploration.kernel.source.text.replace("(M, K)", "(M, K"), "unused": []},
        {"do": "edit", "text": exploration.kernel.source.text.replace("block_M,", "8192,"), "unused": []},
        *({"do": "run", "backend": "emulator", "code": {"compute": text}} for text in broken(exploration)),
    ]
    for question in questions:
        for message in answers(exploration, monkeypatch, **question):
            buffers = message.pop("buffer")
            kind = "Message"
            if message["state"] == "done":
                kind = f"Omit<Answers[{question['do']!r}], 'buffer'>"
                message = {name: value for name, value in message.items() if name not in ("id", "state")}
            found.append((kind, message))
            found += [("Lowering", json.loads(zlib.decompress(one))) for one in buffers or ()]
    assert {one.get("state") for kind, one in found if kind == "Message"} == {"progress", "failed"}
    assert {type(one["error"]) for _, one in found if "moved" in one} == {dict, type(None)}
    return found


def test_what_python_sends_has_these_types(gemm: Exploration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    widget = gemm.widget()
    state = {name: getattr(widget, name) for name in ("backends", "targets", "inputs", "missing", "stale")}
    listed: list[Any] = []
    widget.observe(lambda change: listed.append(change["new"]), "running")
    widget._answer({"id": "1", "do": "check", "words": "inputs ones", "inputs": "ones"}, threading.Event())
    assert (len(listed[0]), listed[1]) == (1, [])
    state["running"] = listed[0]
    messages: list[tuple[str, Any]] = [
        ("Omit<Traits, 'data'>", state),
        *(("Lowering", data) for data in lowerings(gemm)),
        *answered(gemm, monkeypatch),
    ]
    ported = explore(port(SOFTMAX), rows=64, columns=64)
    messages.append(("Gpu", ported.gpu_data("", FREE)))
    assert faults(tmp_path, messages) == []


def test_a_recording_has_this_type(gemm: Exploration, tmp_path: Path) -> None:
    if missing := next(one["missing"] for one in gemm.backends if one["name"] == "emulator"):
        pytest.skip(missing)
    assert faults(tmp_path, [("Recording", gemm.timeline().recording.data)]) == []


def test_a_followed_tile_has_this_type(gemm: Exploration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if missing := next(one["missing"] for one in gemm.backends if one["name"] == "emulator"):
        pytest.skip(missing)
    *progress, done = answers(gemm, monkeypatch, do="tile", output=0, tile=[1, 0], code={})
    assert {message["state"] for message in progress} == {"progress"}
    assert (done.pop("state"), done["tensor"], done["tile"]) == ("done", "C", [1, 0])
    del done["id"], done["buffer"]
    assert faults(tmp_path, [("Answers['tile']", done)]) == []
    failed = answers(gemm, monkeypatch, do="tile", output=0, tile=[2, 0], code={})[-1]
    assert failed["error"]["message"] == ["C has no tile (2, 0)"]


def test_what_is_missing_wrong_or_too_much_is_found(gemm: Exploration, tmp_path: Path) -> None:
    data = gemm.data
    less = {name: value for name, value in data.items() if name != "facts"}
    wrong = {**data, "steps": [{**data["steps"][0], "ms": "1"}]}
    more = {**data, "more": 1}
    found = [
        line for line in faults(tmp_path, [("Lowering", one) for one in (less, wrong, more)]) if "error TS" in line
    ]
    assert [word in line for word, line in zip(("'facts'", "'string'", '"more"'), found, strict=True)] == [True] * 3
