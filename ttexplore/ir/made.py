"""Tell which rule made which line: a step's firings, as statement numbers before and after the step."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from ttexplore.ir.adapter import identity
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firing, Placement, walk
from ttexplore.record import FiringRecord, Listing

# What a statement is known by: itself or, where it was made anew around another body, its variable or condition.
_Key = tuple[str, int]


def firing_records(
    before: TirProgram, after: TirProgram, listings: tuple[Listing, Listing]
) -> tuple[FiringRecord, ...]:
    """The firings of the pass that made `after`, with the listings of both programs.

    Where a rule changed what an earlier one had made, both have made the lines. Statements that stand in what a rule
    made as they did before were not made by it.
    """
    if not after.firings:
        return ()
    return _LineOrigins(before, after, listings).records()


def _keys(statement: tirx.Stmt) -> tuple[_Key, ...]:
    key = ("statement", identity(statement))
    if isinstance(statement, tirx.For):
        return key, ("loop", identity(statement.loop_var))
    if isinstance(statement, tirx.IfThenElse):
        return key, ("branch", identity(statement.condition))
    return (key,)


class _Side:
    """The statements of a program by what they are known by, and their texts by number."""

    def __init__(self, program: TirProgram, listing: Listing) -> None:
        self.texts = {line.node: line.text.strip() for line in listing.lines if line.node is not None}
        self.nodes: dict[_Key, list[int]] = {}
        # TVM's objects are known by where they are in memory, so they have to stay there.
        self.statements: list[tirx.Stmt] = []
        self.roles: list[str] = []
        for role, function in program.functions.items():
            walked = walk(function.body)
            self.statements += walked
            self.roles += [role] * len(walked)
        for number, statement in enumerate(self.statements):
            for key in _keys(statement):
                self.nodes.setdefault(key, []).append(number)

    def of(self, statement: tirx.Stmt) -> list[int]:
        """The numbers of a statement, several where several kernels have it."""
        return next((self.nodes[key] for key in _keys(statement) if key in self.nodes), list[int]())


class _LineOrigins:
    def __init__(self, before: TirProgram, after: TirProgram, listings: tuple[Listing, Listing]) -> None:
        self.firings: tuple[Firing, ...] = after.firings
        self.old, self.new = _Side(before, listings[0]), _Side(after, listings[1])
        # The statements that are there before and after: `stays` has their numbers before, `kept` those after.
        self.stays: set[int] = set()
        self.kept: set[int] = set()
        for number, statement in enumerate(self.new.statements):
            text, role = self.new.texts[number], self.new.roles[number]
            key = next((key for key in _keys(statement) if key in self.old.nodes), None)
            if key is None:
                continue
            same = [line for line in self.old.nodes[key] if self.old.texts[line] == text]
            # Of several kernels that have the statement, the same one.
            same = [line for line in same if self.old.roles[line] == role] or same
            again = [
                line for line in self.new.nodes[key] if self.new.texts[line] == text and self.new.roles[line] == role
            ]
            # Of a statement that is there more often than before, a rule made all: they are all alike.
            if len(again) <= len(same):
                self.stays.update(same)
                self.kept.add(number)

    def records(self) -> tuple[FiringRecord, ...]:
        # By firing: the earlier one that made what it was made of, and the statements before and after it.
        parents: list[int | None] = []
        sources: list[tuple[int, ...]] = []
        line_sets: list[set[int]] = []
        makers: dict[_Key, int] = {}
        claimed: set[int] = set()
        for position, (rule, source, statements) in enumerate(self.firings):
            if isinstance(rule, Placement):
                parents.append(None)
                sources.append(())
                line_sets.append(set())
                continue
            inner = [nested for statement in statements for nested in walk(statement)]
            new = {number for nested in inner for number in self.new.of(nested)} - self.kept - claimed
            claimed |= new
            parent = self._maker(source, makers)
            parents.append(parent)
            sources.append(self._replaced(source, statements, new) if parent is None else sources[parent])
            line_sets.append(new)
            for nested in inner:
                for key in _keys(nested):
                    makers.setdefault(key, position)
        for new, parent in zip(reversed(line_sets), reversed(parents), strict=True):
            if parent is not None:
                line_sets[parent] |= new
        produced: dict[tuple[str, tuple[int, ...]], set[int]] = {}
        for rule, _, statements in self.firings:
            for statement in statements if isinstance(rule, Placement) else ():
                produced[rule.name, tuple(self.old.of(statement))] = {*self.new.of(statement)}
        for firing, before, new in zip(self.firings, sources, line_sets, strict=True):
            if new or not self.stays.issuperset(before):
                produced.setdefault((firing.rule.name, before), set()).update(new)
        return tuple(FiringRecord(rule, before, tuple(sorted(new))) for (rule, before), new in produced.items())

    def _maker(self, source: tirx.Stmt | None, makers: dict[_Key, int]) -> int | None:
        """The firing that made a statement, if an earlier one of this pass did."""
        if source is None or _keys(source)[0] in self.old.nodes:
            return None
        return next((makers[key] for key in _keys(source) if key in makers), None)

    def _replaced(self, source: tirx.Stmt | None, statements: Sequence[tirx.Stmt], new: set[int]) -> tuple[int, ...]:
        """The first statement of `source`, and where `statements` take its place those that are gone. One that has been
        made anew with the same text, out of `new`, is kept."""
        if source is None:
            return ()
        if not statements:
            # Left out, in each kernel that has it no more.
            inside = [number for nested in walk(source) for number in self.old.of(nested)]
            return tuple(sorted({number for number in inside if number not in self.stays}))
        header = self.old.of(source)[:1]
        if self.stays.issuperset(header) and not any(set(_keys(nested)) & {*_keys(source)} for nested in statements):
            return tuple(header)
        inside = [number for nested in walk(source) for number in self.old.of(nested)]
        for number in inside:
            same = next((line for line in sorted(new) if self.new.texts[line] == self.old.texts[number]), None)
            if same is not None and number not in self.stays:
                new.remove(same)
                self.stays.add(number)
        return tuple(sorted({*header, *(number for number in inside if number not in self.stays)}))
