"""The ttnn backend: the real SDK, on a simulated chip or a card."""

from ttexplore.backends.ttnn.backend import Ttnn

__all__ = ["Ttnn"]
