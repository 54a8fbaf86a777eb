"""Each note that the code makes has a sentence with its values, and each sentence a note."""

from __future__ import annotations

import ast
import functools
import string
import tomllib
from pathlib import Path

from ttexplore.notes import Note, note
from ttexplore.record import from_json, to_json

PACKAGE = Path(__file__).parents[1] / "ttexplore"
SENTENCES = tomllib.loads((PACKAGE / "notes.toml").read_text(encoding="utf-8"))


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def values_of(kind: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(SENTENCES[kind]) if name}


def test_each_sentence_has_the_values_of_its_notes() -> None:
    calls = [
        (path, node)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note"
    ]
    assert len(calls) > 40
    for path, call in calls:
        given = {keyword.arg for keyword in call.keywords if keyword.arg}
        is_whole = all(keyword.arg for keyword in call.keywords)
        kind = call.args[0]
        for literal in (kind.body, kind.orelse) if isinstance(kind, ast.IfExp) else (kind,):
            if isinstance(literal, ast.Constant):
                wanted = values_of(str(literal.value))
                assert (given == wanted) if is_whole else given < wanted, (path, call.lineno)


def test_each_sentence_is_used() -> None:
    literals = {
        node.value for tree in trees().values() for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }  # fmt: skip
    assert SENTENCES.keys() <= literals


def test_what_is_not_there_is_left_out() -> None:
    assert str(note("unused", buffer="a", line=None)) == "the value of a is never used: it is removed"
    assert str(note("unused", buffer="a", line=0)) == "the value of a of line 0 is never used: it is removed"
    assert str(note("hint", at=None, what="T.copy x=")) == "T.copy x= is a GPU hint without meaning here"
    assert "2,097,152 work items" in note("too many to share", most=2097152)


def test_a_note_is_data() -> None:
    made = note("depth", buffer="a", depth=3, option="chunk_k_tiles=2")
    assert to_json(made) == {
        "kind": "depth", "values": {"buffer": "a", "depth": 3, "option": "chunk_k_tiles=2"},
        "text": "a holds 3 blocks: chunk_k_tiles=2",
    }  # fmt: skip
    assert from_json(Note, to_json(made)) == made
