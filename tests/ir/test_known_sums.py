"""What is known of sums: it may relate expressions that hold each other."""

from __future__ import annotations

from ttexplore.ir.arithmetic.index import Binary, Key, Range, Select, Variable, learn_loop, narrowed, value_range


def test_sums_that_hold_each_other_end() -> None:
    """A loop whose length is chosen by the block, and a place in it chosen by that length, as in attention with two
    kinds of keys. What is known of the loop's variable holds the choice, and the choice the variable."""
    block, step = Variable(0, "block"), Variable(1, "step")
    noisy = Binary("<", block, 4)
    first = Select(noisy, block, Binary("-", block, 4))
    span = Binary("-", 4, first)
    known: dict[Key, Range] = {block: (0, 7)}
    learn_loop(known, step, 0, Select(noisy, 1, Binary("*", span, 2)))
    later = Binary("+", 4, Binary("-", step, span))
    place = Select(noisy, Binary("+", first, step), Binary("+", first, Select(Binary("<", step, span), step, later)))
    under = narrowed(Binary("==", place, first), known, holds=True)
    found = value_range(Binary("-", place, first), under)
    assert found is not None
    assert found[0] <= 0 <= found[1]
    for at in range(8):
        begin = at if at < 4 else at - 4
        for turn in range(1 if at < 4 else (4 - begin) * 2):
            left = 4 - begin
            true = begin + (turn if at < 4 or turn < left else 4 + turn - left)
            around = value_range(place, known)
            assert around is not None
            assert around[0] <= true <= around[1]
