"""The emulator backend: no SDK needed, only a C++ compiler."""

from ttexplore.backends.emulator.backend import Emulator

__all__ = ["Emulator"]
