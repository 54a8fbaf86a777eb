"""What the rules of the passes tell: which of them made a line, and of what."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import Counter

import pytest

import ttexplore as ttx
from tests.changed_lines import check_changed_lines
from tests.corpus.explored import NAMES, explored
from tests.corpus.spine import gemm
from ttexplore import passes
from ttexplore.errors import UsageError
from ttexplore.ir.rewrite import Rule
from ttexplore.record import StepRecord, from_json, to_json


def _rules() -> list[tuple[str, Rule]]:
    found: list[tuple[str, Rule]] = []
    for module in pkgutil.walk_packages(passes.__path__, f"{passes.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            rules = value if isinstance(value, tuple) else (value,)
            found += [(module.name, one) for one in rules if isinstance(one, Rule)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_each_changed_line_has_a_rule_and_a_source(name: str) -> None:
    for step in explored(name).steps:
        for leaf in step.leaves:
            check_changed_lines(leaf.record)


def test_rules_are_sentences() -> None:
    rules = _rules()
    assert len(rules) > 20
    for module, rule in rules:
        assert rule.name[0].islower(), (module, rule)
        assert rule.sentence[0].isupper(), (module, rule)
        assert rule.sentence.endswith("."), (module, rule)
    # A name means one thing.
    sentences = {(module, rule.name, rule.sentence) for module, rule in rules}
    assert max(Counter((module, name) for module, name, _ in sentences).values()) == 1


def test_why() -> None:
    exploration = ttx.explore(gemm(128, 128, 64, 64, 64, 32))
    step = exploration.steps["C2"]
    lines = [line.text.strip() for line in step.listing.lines]
    number = next(at for at, text in enumerate(lines, 1) if text.startswith("tt.matmul_block"))
    (made,) = step.why(number).made_by
    assert made.rule == "product"
    assert [text.strip() for _, text in made.before] == ["T.gemm(a, b, c)"]
    (at,) = (at for at, _ in made.before)
    assert step.record.before.lines[at - 1].text.strip() == "T.gemm(a, b, c)"
    assert "product: A product is a sum" in str(step.why(number))
    assert "T.gemm(a, b, c)" in step.why(number)._repr_html_()
    kept = next(at for at, text in enumerate(lines, 1) if text.startswith("for item in"))
    assert step.why(kept).made_by == ()
    assert "kept" in str(step.why(kept))
    with pytest.raises(UsageError, match="a line of the program after the step"):
        step.why(0)


def test_a_record_without_rules_loads() -> None:
    """Files of earlier versions have none."""
    step = ttx.explore(gemm(64, 64, 64, 64, 64, 64)).steps["C2"].record
    data = json.loads(json.dumps(to_json(step)))
    assert from_json(StepRecord, data) == step
    del data["rules"], data["firings"]
    assert from_json(StepRecord, data).firings == ()
