"""Texts of kernels with mistakes that let a program hang, for the chapters about multicast and deadlocks.

The mistakes of the exercises are sealed, so that nobody reads them before they are found.
"""

from base64 import b64decode


def changed(text, old, new):
    """`text` with the first `old` replaced, which must be there."""
    assert old in text, f"no {old!r} in the text"
    return text.replace(old, new, 1)


def two_mistakes(ex):
    """Reader and compute kernel of a product, with a mistake in each."""
    return {
        "reader": _changed(ex, "reader", "ayA8IDQ=", "ayA8IDM="),
        "compute": _changed(
            ex, "compute", "Ql9zaGFyZWRfYnVmZmVyLnBvcF9mcm9udCg0KTs=", "Ql9zaGFyZWRfYnVmZmVyLnBvcF9mcm9udCgyKTs="
        ),
    }


def two_wrong_signals(ex):
    """The reader of a product that shares B, with a mistake in the use of each of its two semaphores."""
    reader = _changed(ex, "reader", "Ql9zZW5kZXJfeSwgMSk7", "Ql9zZW5kZXJfeSwgMik7")
    return changed(reader, b64decode("ICAgICAgICAgICAgICAgIEJfdmFsaWQuc2V0KDEpOwo=").decode(), "")


def _changed(ex, kernel, old, new):
    return changed(ex.code[kernel].text, b64decode(old).decode(), b64decode(new).decode())
