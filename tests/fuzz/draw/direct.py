"""Elements of tensors in T.Parallel, at places that it computes."""

from __future__ import annotations

from tests.fuzz.description import Load
from tests.fuzz.draw.draft import DTYPES, Draft
from tests.fuzz.draw.ranges import joined, value_range


def element_of_tensor(draft: Draft, variables: tuple[str, ...]) -> Load:
    """An element of the block that belongs to this one; of one that is turned, or spread with a stride; or of a vector
    along rows or columns."""
    axes, chosen = draft.places, variables
    match draft.number(0, 5):
        case 1:
            axes, chosen = axes[::-1], variables[::-1]
        case 2:
            axes, chosen = axes[-1:], variables[-1:]
        case 3:
            axes, chosen = axes[:1], variables[:1]
        case _:
            pass
    shape, starts = draft.placed(axes, output=False)
    indices = places_of(draft, starts, chosen)
    last = shape[-1]
    if isinstance(last, int) and draft.chance(5):
        # Every second or third element, or each one twice.
        stride = draft.number(2, 3)
        spread = f"({indices[-1]}) // 2" if draft.chance(3) else f"{stride} * ({indices[-1]}) + {draft.number(0, 1)}"
        indices, shape = (*indices[:-1], spread), (*shape[:-1], stride * last)
    tensor = draft.input(shape, draft.one(DTYPES))
    # What is outside of the tensor is zero.
    draft.ranges[tensor] = joined(draft.ranges[tensor], value_range(0, 0))
    return Load(tensor, indices)


def places_of(draft: Draft, starts: tuple[str, ...], variables: tuple[str, ...]) -> tuple[str, ...]:
    """The indices of the element that T.Parallel is at, in a tensor whose block begins at `starts`."""
    first = 0 if draft.begins_with_block(starts, (1,) * len(variables)) else len(starts) - len(variables)
    made = list(starts)
    for axis, variable in enumerate(variables, first):
        made[axis] = variable if starts[axis] == "0" else f"{starts[axis]} + {variable}"
    return tuple(made)
