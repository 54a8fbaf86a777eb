"""Names mean nothing: a kernel whose every name is a random word lowers to the same program.

The variables of each traced kernel of the corpus (tensors, buffers, block indices, loop variables) get other names; the
emitted files are equal up to that renaming, and the results bit for bit.
"""

from __future__ import annotations

import dataclasses
import json
import random
import string
from typing import Any

import pytest
from tvm import ir

import ttexplore as ttx
from tests.corpus.explored import CASES, NAMES, explored
from ttexplore.language.tracer.kernel import TracedKernel, trace

# In these kernels names do show: those of C++ and of passes are changed where they are emitted.
HOSTILE = {"names_of_passes", "names_of_masks", "names_of_cpp"}


def renamed(kernel: TracedKernel, seed: int) -> tuple[TracedKernel, dict[str, str]]:
    """The kernel with a random word for each name, and the words by the old names."""
    random_words = random.Random(seed)
    graph = json.loads(ir.save_json(kernel.function))
    nodes: list[Any] = graph["nodes"]
    places = sorted({node["data"]["name"] for node in nodes if node["type"] == "ir.Var"})
    words: dict[str, str] = {}
    for place in places:
        # The text may be some attribute as well: the variables get a text of their own.
        old = nodes[place]["data"]
        words[old] = "".join(random_words.choices(string.ascii_lowercase, k=12))
        nodes.append({"type": nodes[place]["type"], "data": words[old]})
    new = {place: len(nodes) - len(places) + number for number, place in enumerate(places)}
    for node in nodes:
        if node["type"] == "ir.Var":
            node["data"]["name"] = new[node["data"]["name"]]
    annotations = tuple(
        dataclasses.replace(one, tensor=words.get(one.tensor, one.tensor)) for one in kernel.annotations
    )
    function = ir.load_json(json.dumps(graph))
    return dataclasses.replace(kernel, function=function, annotations=annotations), words


def _in_words(value: Any, words: dict[str, str]) -> Any:
    """The value of an option, where tensors and buffers may be named."""
    if isinstance(value, dict):
        return {_in_words(key, words): inner for key, inner in value.items()}
    return words.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("name", NAMES)
def test_no_name_means_anything(name: str) -> None:
    case = CASES[name]
    first = explored(name)
    kernel = first.kernel
    if name in HOSTILE:
        kernel, _ = renamed(kernel, len(name) + 1)
        first = ttx.explore(kernel, options=case.options)
    other, words = renamed(kernel, len(name))
    options = {option: _in_words(value, words) for option, value in case.options.items()}
    second = ttx.explore(other, options=options)
    assert first.error is None
    assert second.error is None, str(second.error)
    for file, listing in first.files.items():
        text = second.files[file].text
        for old, new in words.items():
            text = text.replace(new, old)
        if file.endswith(".json"):
            # Keys are sorted, names among them.
            assert json.loads(text) == json.loads(listing.text), file
        else:
            # Lines break where they get too long, which names decide.
            assert "".join(text.split()) == "".join(listing.text.split()), file


@pytest.mark.parametrize("name", ["gemm_bias_reload", "deep_expression", "chained_gemms", *sorted(HOSTILE)])
def test_results_are_equal_under_any_names(name: str) -> None:
    kernel = trace(CASES[name].make())
    other, _ = renamed(kernel, 1)
    first, second = (ttx.explore(one, options=CASES[name].options).run() for one in (kernel, other))
    assert [one.tobytes() for one in first.outputs] == [one.tobytes() for one in second.outputs]
