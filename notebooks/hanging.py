"""Texts of kernels with mistakes that let a program hang, for the chapters about multicast and deadlocks."""


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


def two_wrong_signals(ex):
    """The reader of a product that shares B, with a mistake in the use of each of its two semaphores."""
    reader = changed(ex.code["reader"].text, "B_sender_y, 1);", "B_sender_y, 2);")
    return changed(reader, "                B_valid.set(1);\n", "")
