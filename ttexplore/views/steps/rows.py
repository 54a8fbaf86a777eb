"""What a step changed, as aligned rows of the IR and of the plan.

Lines are aligned by their text without indentation, so a statement that only moved into a loop stays one row, marked
``~``. A line that differs only in names which the whole step replaces by others is marked ``≈``, one that stands
elsewhere now ``⇄``: neither is a change. The plan is compared as ``path: value`` lines, aligned by path.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Container, Hashable, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from ttexplore.characters import Printed
from ttexplore.record import Line, StepRecord
from ttexplore.views.steps.plan_lines import flat_plan

RowKind = Literal["equal", "added", "removed", "changed", "indented", "renamed", "moved"]
# Pieces of a line and whether each differs from the other side.
Tokens = tuple[tuple[str, bool], ...]

GLYPHS: dict[RowKind, str] = {
    "equal": " ", "added": "+", "removed": "−", "changed": "±", "indented": "~", "renamed": "≈", "moved": "⇄",
}  # fmt: skip

# The texts of lines, and whether rules have replaced or made them.
_Keys = list[tuple[str, bool]]
# The statements before and after a step that rules replaced and made, and the keys of the lines that it kept.
_Touched = tuple[Container[int | None], Container[int | None], Set[tuple[str, bool]]]
_ALL: _Touched = ((), (), frozenset())
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*")
# Two lines are shown as one changed line when at least this share of their tokens agrees.
_SIMILAR = 0.5
# Replaced blocks larger than this are not searched for pairs: the search is quadratic.
_LARGEST_PAIRING = 4000
# Lines longer than this are compared whole, not token by token.
_LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row: a line before, after or both. Numbers count from 1; tokens mark what differs within the line.

    A moved line has two rows, one where it was and one where it is, each without the other's line; `partner` is its
    number on the other side.
    """

    kind: RowKind
    before: Line | None
    after: Line | None
    before_number: int | None
    after_number: int | None
    before_tokens: Tokens = ()
    after_tokens: Tokens = ()
    partner: int | None = None


@dataclass(frozen=True, slots=True)
class UnchangedLines:
    """Unchanged lines that are not shown."""

    lines: int


@dataclass(frozen=True, slots=True)
class Counts(Printed):
    """How many lines came, went, only changed their indentation or names, and stand elsewhere. A changed line counts
    as gone and come."""

    added: int
    removed: int
    indented: int
    renamed: int = 0
    moved: int = 0

    def __str__(self) -> str:
        counts = (
            (f"+{self.added}", self.added),
            (f"−{self.removed}", self.removed),
            (f"~{self.indented}", self.indented),
            (f"≈{self.renamed}", self.renamed),
            (f"⇄{self.moved}", self.moved),
        )
        return " ".join(text for text, count in counts if count) or "no change"


NO_CHANGE = Counts(0, 0, 0)


def ir_rows(step: StepRecord) -> tuple[DiffRow, ...]:
    """All rows of the IR before and after a step. Lines with equal texts stand beside each other only if rules have
    kept both, or replaced one by the other."""
    before, after = step.before.lines, step.after.lines
    added = {node for firing in step.firings for node in firing.after}
    replaced = _replaced_nodes(step, added)
    keys = _keys(before, replaced), _keys(after, added)
    touched: _Touched = (replaced, added, {key for key in {*keys[0]} & {*keys[1]} if not key[1]})
    rows = align(before, after, *keys, touched)
    return _with_moves(_with_renames(rows, before, after), touched)


def _replaced_nodes(step: StepRecord, added: Container[int | None]) -> set[int | None]:
    """The statements before a step that are gone after it. Rules were also asked about some that they kept: as many of
    each text as there are after it that no rule made."""
    asked = {node for firing in step.firings for node in firing.before}
    unasked = Counter(line.text.strip() for line in step.after.lines if line.node not in added)
    unasked.subtract(line.text.strip() for line in step.before.lines if line.node not in asked)
    replaced: set[int | None] = set()
    for line in step.before.lines:
        text = line.text.strip()
        if line.node in asked:
            if unasked[text] <= 0:
                replaced.add(line.node)
            unasked[text] -= 1
    return replaced


def _keys(lines: Sequence[Line], touched: Container[int | None]) -> _Keys:
    return [(line.text.strip(), line.node in touched) for line in lines]


def plan_rows(step: StepRecord) -> tuple[DiffRow, ...]:
    """All rows of the plan before and after a step."""
    before, after = flat_plan(step.plan_before), flat_plan(step.plan_after)
    return align(
        tuple(Line(f"{path}: {value}") for path, value in before),
        tuple(Line(f"{path}: {value}") for path, value in after),
        [path for path, _ in before],
        [path for path, _ in after],
    )


def counts(rows: Sequence[DiffRow]) -> Counts:
    """The numbers shown beside a step."""
    number = Counter(row.kind for row in rows)
    # A moved line has two rows.
    return Counts(
        number["added"] + number["changed"], number["removed"] + number["changed"], number["indented"],
        number["renamed"], number["moved"] // 2,
    )  # fmt: skip


def renames(rows: Sequence[DiffRow]) -> dict[str, str]:
    """What the renamed rows call by another name: old name to new."""
    names: dict[str, str] = {}
    for row in rows:
        if row.kind == "renamed" and row.before and row.after:
            names |= _substitution(row.before.text, row.after.text) or {}
    return names


def _with_renames(rows: tuple[DiffRow, ...], before: Sequence[Line], after: Sequence[Line]) -> tuple[DiffRow, ...]:
    """Marks the changed rows that differ only by names which one side does not know and the other uses for them."""
    substitutions = [
        (row, _substitution(row.before.text, row.after.text) or {})
        for row in rows
        if row.kind == "changed" and row.before and row.after
    ]
    if not any(names for _, names in substitutions):
        return rows
    old_names = {name for line in before for name in _NAME.findall(line.text)}
    new_names = {name for line in after for name in _NAME.findall(line.text)}
    images: dict[str, set[str]] = {}
    origins: dict[str, set[str]] = {}
    for _, names in substitutions:
        for old, new in names.items():
            images.setdefault(old, set()).add(new)
            origins.setdefault(new, set()).add(old)

    def is_rename(old: str, new: str) -> bool:
        return old not in new_names and new not in old_names and len(images[old]) == len(origins[new]) == 1

    renamed = {
        id(row) for row, names in substitutions if names and all(is_rename(old, new) for old, new in names.items())
    }  # fmt: skip
    return tuple(dataclasses.replace(row, kind="renamed") if id(row) in renamed else row for row in rows)


def _substitution(old: str, new: str) -> dict[str, str] | None:
    """The variables of `old` and what stands for each in `new`, where the lines differ in nothing else; None if they
    do. Another function is another meaning, not another name."""
    before, after = _TOKEN.findall(old.strip()), _TOKEN.findall(new.strip())
    if len(before) != len(after):
        return None
    names: dict[str, str] = {}
    for position, (old_token, new_token) in enumerate(zip(before, after, strict=True)):
        if old_token == new_token:
            continue
        around = (before[position - 1] if position else "", before[position + 1] if position + 1 < len(before) else "")
        is_variable = (
            _NAME.fullmatch(old_token) and _NAME.fullmatch(new_token) and around[0] != "." and around[1] != "("
        )
        if not is_variable or names.setdefault(old_token, new_token) != new_token:
            return None
    return names


def _with_moves(rows: tuple[DiffRow, ...], touched: _Touched) -> tuple[DiffRow, ...]:
    """Marks statements that were removed at one place and came at another: those that rules kept, in order, and others
    that are the only ones of their text."""
    stays = [
        (row.before is None or row.before.node not in touched[0])
        and (row.after is None or row.after.node not in touched[1])
        for row in rows
    ]
    is_known = any(touched[:2])
    return _with_some_moves(_with_some_moves(rows, stays, in_order=is_known), [True] * len(rows), in_order=is_known)


def _with_some_moves(rows: tuple[DiffRow, ...], chosen: Sequence[bool], *, in_order: bool) -> tuple[DiffRow, ...]:
    gone: dict[str, list[int]] = {}
    came: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        if not chosen[position]:
            continue
        if row.kind == "removed" and row.before and row.before.node is not None:
            gone.setdefault(row.before.text.strip(), []).append(position)
        elif row.kind == "added" and row.after and row.after.node is not None:
            came.setdefault(row.after.text.strip(), []).append(position)
    marked = list(rows)
    for text, positions in gone.items():
        partners = came.get(text, [])
        if len(positions) != len(partners) or (len(positions) > 1 and not in_order):
            continue
        for old, new in zip(positions, partners, strict=True):
            marked[old] = dataclasses.replace(rows[old], kind="moved", partner=rows[new].after_number)
            marked[new] = dataclasses.replace(rows[new], kind="moved", partner=rows[old].before_number)
    return tuple(marked)


def align(
    before: Sequence[Line], after: Sequence[Line], before_keys: Sequence[Hashable], after_keys: Sequence[Hashable],
    touched: _Touched = _ALL,
) -> tuple[DiffRow, ...]:  # fmt: skip
    """Rows that pair the lines with equal keys in order, and similar lines in between, of which rules have `touched`
    both or none."""
    if before_keys == after_keys and all(old.text == new.text for old, new in zip(before, after, strict=True)):
        return tuple(_paired(before, after, i, i) for i in range(len(before)))
    rows: list[DiffRow] = []
    # The junk heuristic drops frequent lines; it only pays where the search would be slow without it.
    matcher = difflib.SequenceMatcher(None, before_keys, after_keys, autojunk=max(len(before), len(after)) > 1000)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            rows.extend(_paired(before, after, i, j) for i, j in zip(range(i1, i2), range(j1, j2), strict=True))
        else:
            rows.extend(_replaced(before, after, range(i1, i2), range(j1, j2), touched))
    return tuple(rows)


def _paired(before: Sequence[Line], after: Sequence[Line], i: int, j: int) -> DiffRow:
    old, new = before[i], after[j]
    if old.text == new.text:
        return DiffRow("equal", old, new, i + 1, j + 1)
    if old.text.strip() == new.text.strip():
        return DiffRow("indented", old, new, i + 1, j + 1)
    old_tokens, new_tokens = _token_changes(old.text, new.text)
    return DiffRow("changed", old, new, i + 1, j + 1, old_tokens, new_tokens)


def _replaced(
    before: Sequence[Line], after: Sequence[Line], old: range, new: range, touched: _Touched
) -> list[DiffRow]:  # fmt: skip
    rows: list[DiffRow] = []
    i, j = old.start, new.start
    for pair_i, pair_j in [*_similar_pairs(before, after, old, new, touched), (old.stop, new.stop)]:
        rows.extend(DiffRow("removed", before[k], None, k + 1, None) for k in range(i, pair_i))
        rows.extend(DiffRow("added", None, after[k], None, k + 1) for k in range(j, pair_j))
        if pair_i < old.stop and pair_j < new.stop:
            rows.append(_paired(before, after, pair_i, pair_j))
        i, j = pair_i + 1, pair_j + 1
    return rows


def _similar_pairs(
    before: Sequence[Line], after: Sequence[Line], old: range, new: range, touched: _Touched
) -> list[tuple[int, int]]:
    """Pairs in order with the largest sum of similarities, each at least :data:`_SIMILAR`."""
    if not old or not new or len(old) * len(new) > _LARGEST_PAIRING:
        return []
    old_bags = [Counter(_words(before[i].text)) for i in old]
    new_bags = [Counter(_words(after[j].text)) for j in new]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    keys = _keys([before[i] for i in old], touched[0]), _keys([after[j] for j in new], touched[1])
    score = [
        [
            _similarity(old, new) if key == twin or (key[1] == twin[1] and not {key, twin} & touched[2]) else 0.0
            for twin, new in zip(keys[1], new_bags, strict=True)
        ]
        for key, old in zip(keys[0], old_bags, strict=True)
    ]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            together = best[i + 1][j + 1] + score[i][j] if score[i][j] >= _SIMILAR else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], together)
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if score[i][j] >= _SIMILAR and best[i][j] == best[i + 1][j + 1] + score[i][j]:
            pairs.append((old[i], new[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _similarity(first: Counter[str], second: Counter[str]) -> float:
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 1.0


def _token_changes(old: str, new: str) -> tuple[Tokens, Tokens]:
    if max(len(old), len(new)) > _LONGEST_LINE:
        return ((old, True),), ((new, True),)
    # Indentation is no change of the statement.
    old_code, new_code = old.lstrip(), new.lstrip()
    before = [(old[: len(old) - len(old_code)], False)]
    after = [(new[: len(new) - len(new_code)], False)]
    old_tokens, new_tokens = _TOKEN.findall(old_code), _TOKEN.findall(new_code)
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old_tokens, new_tokens, autojunk=False).get_opcodes():
        before.append(("".join(old_tokens[i1:i2]), tag != "equal"))
        after.append(("".join(new_tokens[j1:j2]), tag != "equal"))
    return tuple(pair for pair in before if pair[0]), tuple(pair for pair in after if pair[0])


def with_context(rows: Sequence[DiffRow], context: int = 3) -> tuple[DiffRow | UnchangedLines, ...]:
    """The changed rows with `context` equal rows around each; longer equal runs become a :class:`UnchangedLines`."""
    keep: set[int] = set()
    for position, row in enumerate(rows):
        if row.kind != "equal":
            keep.update(range(max(0, position - context), min(len(rows), position + context + 1)))
    shown: list[DiffRow | UnchangedLines] = []
    hidden = 0
    for position, row in enumerate(rows):
        # A gap of one line takes as much room as the line.
        alone = position - 1 in keep and position + 1 in keep
        if position in keep or alone:
            if hidden:
                shown.append(UnchangedLines(hidden))
                hidden = 0
            shown.append(row)
        else:
            hidden += 1
    if hidden:
        shown.append(UnchangedLines(hidden))
    return tuple(shown)
