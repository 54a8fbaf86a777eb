"""Texts of kernels with mistakes that let a program hang, for the notebook about deadlocks."""


def changed(text, old, new):
    """`text` with the first `old` replaced, which must be there."""
    assert old in text, f"no {old!r} in the text"
    return text.replace(old, new, 1)


def two_mistakes(ex):
    """Reader and compute kernel of a product, with a mistake in each."""
    return {
        "reader": changed(ex.code["reader"].text, "k < 4", "k < 3"),
        "compute": changed(ex.code["compute"].text, "B_shared_buffer.pop_front(4);", "B_shared_buffer.pop_front(2);"),
    }
